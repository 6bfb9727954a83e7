"""The words of an SQL text of a log as its server read them: comments gone, executable comments opened.

An executable comment of a log was run: where a server skips one, it writes a space for the `!` into its own text, so
that no replica runs it (seen on MySQL 8.0.15 and 9.7, MariaDB 10.11 and 11.8). For MySQL `/*M!` begins a plain comment.

Lexical only. Backslashes and double quotes count as the event's sql_mode says. Where that is not known, what stands
in double quotes may be a name. A text that would then read differently under NO_BACKSLASH_ESCAPES is refused.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from catchment.wire.cells.charsets import NO_CHARACTER

# Only these ASCII characters are spaces in every character set. U+00A0 is one in latin1 and part of a name in utf8.
# Control characters end a "--" or not. So a text with any of them outside of quotes and comments is refused.
_SPACE = r"[ \t\n\v\f\r]"
_LEXEME = r"""
    (?P<string>{strings})
  | (?P<name>`(?:[^`]++|``)*+`)
  | (?P<comment>--(?=[\ \x00-\x1f]|\Z)[^\n]*|\#[^\n]*|/\*(?!{run}).*?\*/)
  | (?P<open>/\*{run}(?:[0-9]{{5,6}})?)
  | (?P<close>\*/)
  | (?P<word>[0-9A-Za-z_$\u00a1-\ufffc\ufffe\uffff]+)
  | (?P<space>{space}+)
  | (?P<mark>[!-~])
  | (?P<strange>.)
"""
_STRINGS = r"""'(?:[^'\\]++|''|\\.)*+'|"(?:[^"\\]++|""|\\.)*+\""""
_STRINGS_PLAIN = r"""'(?:[^']++|'')*+'|"(?:[^"]++|"")*+\""""


def _lexemes(strings: str, run: str) -> re.Pattern[str]:
    return re.compile(_LEXEME.format(strings=strings, space=_SPACE, run=run), re.VERBOSE | re.DOTALL)


# By whether the server is a MySQL, and whether backslashes are plain characters.
_LEXEMES = {
    (mysql, plain): _lexemes(_STRINGS_PLAIN if plain else _STRINGS, "!" if mysql else "M?!")
    for mysql in (False, True)
    for plain in (False, True)
}
NO_BACKSLASH_ESCAPES = 1 << 20
ANSI_QUOTES = 1 << 2
STRICT = 3 << 21  # STRICT_TRANS_TABLES or STRICT_ALL_TABLES
# REAL_AS_FLOAT, POSTGRESQL, ORACLE, MSSQL, DB2, MAXDB: names of types mean other types. With EMPTY_STRING_IS_NULL ''
# means NULL (MariaDB manual: SQL_MODE).
RENAMING = 1 | 0x1F << 8 | 1 << 32
_SHOWN_MAX = 80

# Why a statement stops a feed that is none of those known.
NOT_UNDERSTOOD = "a statement changed it that Catchment does not follow"


class AmbiguousText(ValueError):
    """The text cannot be cut into words in one way only. `words`: those before that place."""

    def __init__(self, why: str, words: Sequence["Word"] = ()) -> None:
        super().__init__(why)
        self.words = tuple(words)


class Word(NamedTuple):
    """One word, name, string or mark; `quote` is its quote character, empty for bare words and marks.

    What stands in double quotes has a single quote here where it is known to be a string.
    """

    text: str
    quote: str = ""

    @property
    def keyword(self) -> str:
        """Upper-case text of a bare word or mark; empty when quoted."""
        return "" if self.quote else self.text.upper()

    @property
    def sql(self) -> str:
        """The word as SQL; a string shows only that it is one, its content never matters here."""
        if self.quote == "`":
            return "`" + self.text.replace("`", "``") + "`"
        if self.quote == '"' and re.fullmatch(r"\w+", self.text):
            return f'"{self.text}"'
        return "''" if self.quote else self.text


def words_of(sql: str, *, mysql: bool = False, sql_mode: int | None = None) -> tuple[Word, ...]:
    """The words of `sql`, without the prefix SET STATEMENT ... FOR.

    `sql_mode`: as the event has it, None when it is not known. Raises AmbiguousText.
    """
    if "sql_mode" in sql.lower():
        sql_mode = None  # SET STATEMENT sql_mode: read in the session's, logged with its own
    plain = sql_mode is not None and bool(sql_mode & NO_BACKSLASH_ESCAPES)
    quoted_names = sql_mode is None or bool(sql_mode & ANSI_QUOTES)
    words: list[Word] = []
    opened = 0
    for match in _LEXEMES[mysql, plain].finditer(sql):
        kind, text = match.lastgroup, match[0]
        if kind == "open":
            opened += 1
        elif kind == "close":
            opened -= 1
            if opened < 0:
                raise AmbiguousText("a comment ends that did not begin", words)
        elif kind not in ("space", "comment"):
            if kind == "string" and sql_mode is None and re.search(r"\\['\"]", text):
                raise AmbiguousText("a backslash stands before a quote", words)
            words.append(_word(kind, text, words, quoted_names=quoted_names))
    if opened:
        raise AmbiguousText("an executable comment does not end", words)
    while words and words[-1] == Word(";"):
        words.pop()
    return _without_settings(tuple(words))


def beginning(sql: str) -> str:
    """The statement for a message: up to its first string, which may hold a row's value or a password."""
    shown = re.split(r"['\"]", sql, maxsplit=1)[0][:_SHOWN_MAX]
    return " ".join(shown.split()) + (" ..." if len(shown) < len(sql) else "")


def parted(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The actions of an ALTER TABLE: parted by the commas outside of parentheses."""
    depth, start = 0, 0
    for place, word in enumerate(words):
        depth += (word.keyword == "(") - (word.keyword == ")")
        if word.keyword == "," and depth == 0:
            yield words[start:place]
            start = place + 1
    yield words[start:]


def _word(kind: str | None, text: str, before: Sequence[Word], *, quoted_names: bool) -> Word:
    if kind == "strange" or (kind == "mark" and text in "'\"`"):
        why = "a quote does not end" if kind == "mark" else f"{text!r} stands outside of quotes"
        raise AmbiguousText(why, before)
    if kind == "string" and (text[0] == "'" or not quoted_names):
        return Word(text[1:-1].replace(text[0] * 2, text[0]), "'")
    if kind in ("string", "name"):
        if NO_CHARACTER in text:
            raise AmbiguousText("a name is not text in the statement's character set", before)
        return Word(text[1:-1].replace(text[0] * 2, text[0]), text[0])
    return Word(text)


def _without_settings(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The statement of `SET STATEMENT variable=value, ... FOR statement`, which is logged as it was sent.

    A value in parentheses may be a function that changes rows: then the statement stays as it is.
    """
    if [w.keyword for w in words[:2]] != ["SET", "STATEMENT"]:
        return words
    for place, word in enumerate(words):
        if word.keyword == "(":
            return words
        if word.keyword == "FOR":
            return words[place + 1 :]
    raise AmbiguousText("SET STATEMENT without FOR")
