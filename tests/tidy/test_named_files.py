"""Files that comments name, and pages and headings that the docs link to, are there."""

from pathlib import Path

from tests.tidy.named_files import all_missing_in_comments, broken_links, missing_in_comments, pages
from tests.tidy.sources import PACKAGE, Source


def test_files_that_comments_name_are_there() -> None:
    found = all_missing_in_comments()
    assert not found, "\n".join(found)


def test_links_of_the_docs_lead_somewhere() -> None:
    found = [link for page in pages() for link in broken_links(page)]
    assert not found, "\n".join(found)


def test_what_is_not_there_is_found(tmp_path: Path) -> None:
    module = Source(
        PACKAGE / "x.py", '"""See rows.py and old.md."""\n# As log/rows.py, rows.pxd; not ows.py\n'
    )
    named = [place.rpartition(" ")[2] for place in missing_in_comments(module, ["src/log/rows.py"])]
    assert named == ["old.md", "rows.pxd", "ows.py"]
    declarations = Source(PACKAGE / "x.pxd", "cdef int a\n# As rows.py\n")
    assert list(missing_in_comments(declarations, [])) == ["src/catchment/x.pxd:2: rows.py"]
    page = tmp_path / "page.md"
    page.write_text(
        "# A page: of *all*\n\n[a](page.md#a-page-of-all) [b](#b) [c](c.md) [d](https://d/e.md)\n```\n[e](e.md)\n```\n"
    )
    assert list(broken_links(page)) == ["page.md: #b", "page.md: c.md"]
