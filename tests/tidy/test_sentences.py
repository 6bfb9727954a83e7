"""No sentence of the README and the docs is longer than a reader can hold (tests/tidy/sentences.py)."""

from pathlib import Path

import pytest

from tests.tidy.sentences import MESSAGES, ROOT, WORDS_MAX, pages, sentences, too_long

_LONG = "It " + "never " * WORDS_MAX + "ends"


def texts(page: str) -> list[str]:
    return [sentence.text for sentence in sentences(page)]


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_too_long(page: Path) -> None:
    found = [
        f"{page.relative_to(ROOT)}:{sentence.line}: {sentence.words} words: {sentence.text}"
        for sentence in too_long(page.read_text())
    ]
    assert not found, "\n".join(["say it in two sentences:", *found])


def test_pages_are_read() -> None:
    assert {page.name for page in pages()} > {"README.md", "concepts.md", "design.md", "operations.md"}
    assert {page.name for page in (ROOT / "docs").glob("*.md")} > MESSAGES


@pytest.mark.parametrize(
    "page",
    [
        f"One.\n\n{_LONG}.\n",
        f"One.\n\n* {_LONG}\n",
        f"One.\n\n  12. {_LONG}\n",
        f"One.\n\n| {_LONG} | b |\n",
        f"One.\n\n| a | {_LONG} |\n",
        f"One.\n\n## {_LONG}\n",
        f"One.\n\n> {_LONG}\n",
        f"```\n```\n{_LONG}\n",
        f"* One.\n\n  {_LONG}\n",
        "One. Two.\n\n" + _LONG.replace(" ", "\n") + "\n",
        "One.\n<!-- two\n-->" + _LONG,
    ],
)
def test_a_sentence_that_is_too_long_is_found_with_its_line(page: str) -> None:
    assert [(sentence.line, sentence.words) for sentence in too_long(page)] == [(3, WORDS_MAX + 2)]


def test_the_limit_itself_is_allowed() -> None:
    assert not list(too_long("word " * WORDS_MAX + "."))
    assert len(list(too_long("word " * WORDS_MAX + "- word."))) == 1


@pytest.mark.parametrize(
    "page",
    [
        f"```\n{_LONG}\n```\n",
        f"* One.\n\n  ```sql\n  {_LONG}\n  ```\n",
        f"One:\n\n    {_LONG}\n",
        f"* One:\n\n      {_LONG}\n",
        f"| a | b |\n| {'- ' * 50} | --- |\n",
        f"<!-- {_LONG} -->\n",
        f"[One](https://example.com/{_LONG.replace(' ', '_')} '{_LONG}').\n",
    ],
)
def test_code_and_targets_of_links_have_no_sentences(page: str) -> None:
    assert not list(too_long(page))


def test_where_a_sentence_ends() -> None:
    assert texts("One e.g. this. Two `a. B` i.e. code! (Three?) **Four.** `Five` 1.5 s") == [
        "One e.g. this.",
        "Two `a. B` i.e. code!",
        "(Three?)",
        "**Four.**",
        "`Five` 1.5 s",
    ]
    assert texts("Goes on [over\na line](a\nb). Next ... goes on.") == [
        "Goes on over a line.",
        "Next ... goes on.",
    ]
    assert [s.line for s in sentences("One\ntwo. Three\n[four\n](b\nc). Five.\n")] == [1, 2, 5]
