"""The words of an SQL text as MariaDB 10.11 or MySQL 8 reads them: comments gone, executable comments opened.

Lexical only. A backslash in a string counts as the event's sql_mode says; where that is not known, a text that would
read differently under NO_BACKSLASH_ESCAPES is refused. A name in double quotes may be an identifier in any mode.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LEXEME = r"""
    (?P<string>{strings})
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<comment>--(?=[\s\x00-\x1f]|$)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/)
  | (?P<open>/\*(?P<flavour>M?)!(?P<version>\d{{5,6}})?)
  | (?P<close>\*/)
  | (?P<word>[\w$]+)
  | (?P<space>\s+)
  | (?P<mark>.)
"""
_STRINGS = r"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*\""""
_STRINGS_PLAIN = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_ESCAPED = re.compile(_LEXEME.format(strings=_STRINGS), re.VERBOSE | re.DOTALL)
_PLAIN = re.compile(_LEXEME.format(strings=_STRINGS_PLAIN), re.VERBOSE | re.DOTALL)
NO_BACKSLASH_ESCAPES = 1 << 20
_SOURCE_VERSION = 101100
_MYSQL_VERSION = 80000

# Why a statement stops a feed that is none of those known.
NOT_UNDERSTOOD = "a statement that names it is not one that is known to leave rows alone"


class Unreadable(ValueError):
    """The text cannot be cut into words in one way only."""


class Word(NamedTuple):
    """One word, name, string or mark; `quote` is its quote character, empty for bare words and marks."""

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


def readings(sql: str, *, mysql: bool = False, sql_mode: int | None = None) -> tuple[tuple[Word, ...], ...]:
    """The one or two ways in which the server may have read `sql`, without the prefix SET STATEMENT ... FOR.

    Executable comments are opened. One that asks for a version that this server may not have is also left
    out, as a second reading. `sql_mode`: as the event has it, None when it is not known. Raises Unreadable.
    """
    if "sql_mode" in sql.lower():
        sql_mode = None  # SET STATEMENT sql_mode: read in the session's, logged with its own
    lexeme = _PLAIN if sql_mode is not None and sql_mode & NO_BACKSLASH_ESCAPES else _ESCAPED
    if sql_mode is None:
        _must_read_alike(sql)
    run, left_out = (_words(lexeme, sql, all_run=all_run, mysql=mysql) for all_run in (True, False))
    both = (run,) if run == left_out else (run, left_out)
    return tuple(_without_settings(words) for words in both)


def _must_read_alike(sql: str) -> None:
    """Raise Unreadable for a text whose strings end elsewhere where a backslash stands for itself."""
    for match in _ESCAPED.finditer(sql):
        if match.lastgroup == "string" and re.search(r"\\['\"]", match[0]):
            raise Unreadable("a backslash stands before a quote")


def _words(lexeme: re.Pattern[str], sql: str, *, all_run: bool, mysql: bool) -> tuple[Word, ...]:
    words: list[Word] = []
    open_comments: list[bool] = []  # of each, whether the server runs what is in it
    for match in lexeme.finditer(sql):
        kind, text = match.lastgroup, match[0]
        if match["open"] is not None:
            flavour, version = match["flavour"], int(match["version"] or 0)
            if mysql:  # for it MariaDB's own are comments
                open_comments.append(flavour == "" and (all_run or version <= _MYSQL_VERSION))
            else:
                open_comments.append(all_run or _surely_runs(flavour, version))
        elif kind == "close":
            if not open_comments:
                raise Unreadable("a comment ends that did not begin")
            open_comments.pop()
        elif kind not in ("space", "comment"):
            word = _word(kind, text)
            if all(open_comments):
                words.append(word)
    if open_comments:
        raise Unreadable("an executable comment does not end")
    if words and words[-1] == Word(";"):
        words.pop()
    return tuple(words)


def parted(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The actions of an ALTER TABLE: parted by the commas outside of parentheses."""
    depth, start = 0, 0
    for place, word in enumerate(words):
        depth += (word.keyword == "(") - (word.keyword == ")")
        if word.keyword == "," and depth == 0:
            yield words[start:place]
            start = place + 1
    yield words[start:]


def _word(kind: str | None, text: str) -> Word:
    if kind == "string":
        return Word(text[1:-1].replace(text[0] * 2, text[0]), text[0])
    if kind == "name":
        return Word(text[1:-1].replace("``", "`"), "`")
    if kind == "mark" and text in "'\"`":
        raise Unreadable("a quote does not end")
    return Word(text)


def _surely_runs(flavour: str, version: int) -> bool:
    """MariaDB skips versions above its own, and 50700 to 99999 as MySQL's (manual: Comment Syntax)."""
    return version <= _SOURCE_VERSION and (flavour == "M" or not 50700 <= version <= 99999)


def _without_settings(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The statement of `SET STATEMENT variable=value, ... FOR statement`, which is logged as it was sent."""
    if [w.keyword for w in words[:2]] != ["SET", "STATEMENT"]:
        return words
    for place, word in enumerate(words):
        if word.keyword == "FOR":
            return words[place + 1 :]
    raise Unreadable("SET STATEMENT without FOR")
