"""Files that comments, docstrings and links of the docs name, and that are not there: files move, and nobody reads the
comment."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.tidy.sources import CODE, ROOT, Source, sources

_FILE = re.compile(r"[\w/.-]+\.(?:pyi?|pxd|md)\b")
_CODE_BLOCK = re.compile(r"^ *(```|~~~).*?^ *\1", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


def known_files() -> list[str]:
    """Paths of all files that a comment may name, from the root on."""
    inside = [path for top in (*CODE, "docs") for path in (ROOT / top).rglob("*.*")]
    return [path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.*"), *inside)]


def missing_in_comments(source: Source, known: Collection[str]) -> Iterator[str]:
    """The files that comments and docstrings name and that are none of those `known`, or the end of a path of one."""
    missing = {name for name in _FILE.findall(source.text) if not _is_known(name, known)}
    if not missing:
        return
    for line, text in sorted((*source.docstrings, *source.comments)):
        yield from (f"{source.name}:{line}: {name}" for name in _FILE.findall(text) if name in missing)


def _is_known(name: str, known: Collection[str]) -> bool:
    end = f"/{name.removeprefix('...').lstrip('/')}"
    return any(f"/{path}".endswith(end) for path in known)


def all_missing_in_comments() -> list[str]:
    """The same of all code of the project."""
    known = known_files()
    files = [one for top in CODE for one in sources(top, (".py", ".pyi", ".pxd"))]
    return [place for one in files for place in missing_in_comments(one, known)]


def pages() -> list[Path]:
    """All pages in Markdown."""
    tops = ("docs", "examples", "bench", "packaging")
    return sorted([*ROOT.glob("*.md"), *(page for top in tops for page in (ROOT / top).rglob("*.md"))])


def broken_links(page: Path) -> Iterator[str]:
    """The links of a page to a file that is not there, or to a heading that its page does not have."""
    for target in _LINK.findall(_CODE_BLOCK.sub("", page.read_text())):
        if ":" in target:
            continue  # an address
        file, _, heading = target.partition("#")
        at = page.parent / file if file else page
        if not at.exists() or (heading and at.suffix == ".md" and heading not in _anchors(at)):
            yield f"{page.name}: {target}"


def _anchors(page: Path) -> set[str]:
    """The names that GitHub gives the headings of a page."""
    headings = _HEADING.findall(_CODE_BLOCK.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
