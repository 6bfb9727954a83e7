"""What finds long sentences in comments and docstrings (tests/tidy/comments.py) finds all of them, and nothing else."""

from tests.tidy.comments import WORDS_MAX, long_sentences, said

_LONG = "It " + "never " * WORDS_MAX + "ends"

_SOURCE = f'''"""Short.

{_LONG}.
"""

# One
# comment. {_LONG}.
a = "# {_LONG}"  # trailing
# {_LONG}


def b() -> None:
    """{_LONG}"""
    # Short.

    # {_LONG}
'''


def test_sentences_of_docstrings_and_comments() -> None:
    assert [(s.line, s.words) for s in long_sentences(_SOURCE)] == [
        (line, WORDS_MAX + 2) for line in (3, 7, 9, 13, 16)
    ]


def test_comments_on_following_lines_are_one() -> None:
    assert list(said("# a\n# b\nc = 1  # d\n# e\n")) == [(1, "a\nb"), (3, "d"), (4, "e")]
