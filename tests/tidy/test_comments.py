"""No sentence of a comment or docstring under src/ is longer than a reader can hold (tests/tidy/comments.py)."""

from pathlib import Path

from tests.tidy.comments import (
    WORDS_MAX,
    files,
    files_of_house,
    long_sentences,
    long_sentences_of,
    missing_files,
    said,
)

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


class C:
    d: int
    """{_LONG}"""
'''


def test_no_sentence_is_too_long() -> None:
    found = [line for path in files() for line in long_sentences_of(path)]
    assert not found, "\n".join(["say it in two sentences:", *found])


def test_modules_stubs_and_declarations_are_read() -> None:
    names = {path.name for path in files()}
    assert names > {"__init__.py", "decoder.py", "decoder.pyi", "decoder.pxd"}


def test_a_file_with_a_long_sentence_is_named(tmp_path: Path) -> None:
    module, declaration = tmp_path / "planted.py", tmp_path / "planted.pxd"
    module.write_text(f'a = 1\n"""Short. {_LONG}."""\n')
    declaration.write_text(f"cdef int a\n# {_LONG}\n")
    for path in (module, declaration):
        assert long_sentences_of(path) == [
            f"{path}:2: {WORDS_MAX + 2} words: {_LONG}{'.' if path is module else ''}"
        ]


def test_files_that_comments_name_are_there() -> None:
    known = files_of_house()
    found = {
        str(path): missing
        for path in files()
        if (missing := missing_files(path.read_text(), known, docstrings=path.suffix != ".pxd"))
    }
    assert not found


def test_a_file_that_is_not_there_is_found() -> None:
    source = '"""See rows.py and old.md."""\n# As log/rows.py, rows.pxd; not ows.py\n'
    assert missing_files(source, ["src/log/rows.py"]) == ["old.md", "ows.py", "rows.pxd"]


def test_the_limit_itself_is_allowed() -> None:
    assert not long_sentences("# " + "word " * WORDS_MAX)
    assert len(long_sentences("# " + "word " * (WORDS_MAX + 1))) == 1


def test_sentences_of_docstrings_and_comments() -> None:
    assert [(s.line, s.words) for s in long_sentences(_SOURCE)] == [
        (line, WORDS_MAX + 2) for line in (3, 7, 9, 13, 16, 21)
    ]


def test_comments_on_following_lines_are_one() -> None:
    assert list(said("# a\n# b\nc = 1  # d\n# e\n")) == [(1, "a\nb"), (3, "d"), (4, "e")]
