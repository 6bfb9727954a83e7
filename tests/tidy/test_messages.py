"""Everything that Catchment says stands on one page, so that a change of a message is read before it lands."""

import re

import pytest

from tests.tidy.messages import PAGE, messages, page

# Words that a native engineer does not write so, each with the better one.
AVOIDED = {
    r"\banew\b": "again",
    r"\b[Ww]hoever\b": "anyone who",
    r"\bbesides\b": "also",
    r"; else\b": "; otherwise",
    r"\b(is|are) told\b": "name who says it",
    r"\['|'\]|\('|',\)": "no list of Python",
}


def test_the_page_has_every_message() -> None:
    assert PAGE.read_text() == page(), "read what changed aloud, then run: python -m tests.tidy.messages"


@pytest.mark.parametrize("pattern", AVOIDED, ids=AVOIDED.values())
def test_words_that_are_not_idiomatic(pattern: str) -> None:
    found = [said for group in messages().values() for said in group if re.search(pattern, said)]
    assert not found


def test_nothing_that_is_said_is_forgotten() -> None:
    """The page is taken from the source: messages of every kind are on it."""
    said = {text for group in messages().values() for text in group}
    for part in (
        "the log is not the one read before",  # an error
        "does a commit hang (SHOW PROCESSLIST)?",
        "after a power cut the server can forget transactions",  # a finding of the doctor
        "changes wait in the lake's tail",  # a line of the log
        "stopped again, ended at once",  # a line at the terminal
    ):
        assert any(part in text for text in said), part
