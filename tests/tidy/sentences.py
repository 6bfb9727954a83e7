"""The sentences of a page in Markdown: `python -m tests.tidy.sentences` lists those of the docs that are too long.

Prose, headings, list items and cells of tables have sentences. Blocks of code, targets of links and comments have none.
A sentence ends at a full stop, a question mark or an exclamation mark, and with its paragraph, item or cell.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
WORDS_MAX = 40
# A message is one line that says what is wrong and what to do, so this page may have longer sentences.
MESSAGES = {"messages.md"}

_FENCE = re.compile(r"\s*(```+|~~~+)")
_ITEM = re.compile(r"(\s*)([-*+]|\d+[.)])(\s+)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_RULE_OF_TABLE = re.compile(r"[\s|:-]+")
_BAR = re.compile(r"(?<!\\)\|")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|approx)\.$")
# Behind a stop may stand what closes a quotation, a parenthesis or emphasis.
_END = re.compile(r"[.!?][\"')\]*_]*(?=\s|$)")
_WORD = re.compile(r"\w")


class Sentence(NamedTuple):
    """A sentence, with the line on which it begins."""

    line: int
    text: str

    @property
    def words(self) -> int:
        """How many words it has, those of code among them; a dash or an operator is none."""
        return sum(1 for word in self.text.split() if _WORD.search(word))


class _Line(NamedTuple):
    number: int
    text: str


def pages() -> list[Path]:
    """The pages that people read from end to end, without the decisions, which are records."""
    docs = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in MESSAGES]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs, ROOT / "docs" / "model" / "README.md"]


def too_long(page: str, words_max: int = WORDS_MAX) -> Iterator[Sentence]:
    """The sentences of a page that have more words than a sentence may have."""
    return (sentence for sentence in sentences(page) if sentence.words > words_max)


def sentences(page: str) -> Iterator[Sentence]:
    """All sentences of a page."""
    for block in _blocks(page):
        yield from _sentences(block)


def _blocks(page: str) -> list[list[_Line]]:
    """The lines of each paragraph, heading, list item and cell."""
    blocks: list[list[_Line]] = [[]]
    fence, margin = "", 0
    for number, line in enumerate(_COMMENT.sub(_blank, page).splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        if not blocks[-1] and line.strip():
            margin = margin if indent >= margin else 0
        mark, item = _FENCE.match(line), _ITEM.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif not line.strip():
            blocks.append([])
        elif mark:
            fence = mark[1]
            blocks.append([])
        elif not blocks[-1] and indent >= margin + 4:
            continue  # code, indented
        elif line.lstrip().startswith("|"):
            blocks += [*_cells(_Line(number, line)), []]
        elif _HEADING.match(line):
            blocks += [[_Line(number, line.lstrip(" #"))], []]
        elif item:
            margin = len(item[0])
            blocks.append([_Line(number, line[margin:])])
        else:
            blocks[-1].append(_Line(number, line.lstrip(" >")))
    return blocks


def _blank(comment: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", comment[0])


def _cells(row: _Line) -> Iterator[list[_Line]]:
    if not _RULE_OF_TABLE.fullmatch(row.text):
        for cell in _BAR.split(row.text.strip().removeprefix("|")):
            yield [_Line(row.number, cell.strip())]


def _sentences(block: list[_Line]) -> Iterator[Sentence]:
    """The sentences of one block, which may go over several lines."""
    text = "\n".join(line.text for line in block)
    text = _LINK.sub(lambda link: "\n" * (link[0].count("\n") - link[1].count("\n")) + link[1], text)
    # A stop within code ends nothing, and neither does one before a small letter.
    bare = _CODE.sub(lambda code: re.sub(r"[^\s`]", "x", code[0]), text)
    begin = 0
    for stop in _END.finditer(bare):
        rest = bare[stop.end() :].lstrip()
        if rest[:1].islower() or _ABBREVIATION.search(bare[begin : stop.end()].rstrip("\"')]*_")):
            continue
        yield from _sentence(block, text, begin, stop.end())
        begin = stop.end()
    yield from _sentence(block, text, begin, len(text))


def _sentence(block: list[_Line], text: str, begin: int, end: int) -> Iterator[Sentence]:
    said = text[begin:end]
    if said.strip():
        lead = begin + len(said) - len(said.lstrip())
        yield Sentence(block[text.count("\n", 0, lead)].number, " ".join(said.split()))


if __name__ == "__main__":
    for page in pages():
        for sentence in too_long(page.read_text()):
            print(f"{page.relative_to(ROOT)}:{sentence.line}: {sentence.words} words: {sentence.text}")
