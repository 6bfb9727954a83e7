"""The words of an SQL text as MariaDB 10.11 or MySQL 8 reads them: comments gone, executable comments opened.

Lexical only. Backslashes and double quotes count as the event's sql_mode says. Where that is not known, what stands
in double quotes may be a name. A text that would then read differently under NO_BACKSLASH_ESCAPES is refused.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# Only these ASCII characters are spaces in every character set. U+00A0 is one in latin1 and part of a name in utf8.
# Control characters end a "--" or not. So a text with any of them outside of quotes and comments is refused.
_SPACE = r"[ \t\n\v\f\r]"
_LEXEME = r"""
    (?P<string>{strings})
  | (?P<name>`(?:[^`]++|``)*+`)
  | (?P<comment>--(?=[\ \x00-\x1f]|\Z)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/)
  | (?P<open>/\*(?P<flavour>M?)!(?P<version>[0-9]{{5,6}})?)
  | (?P<close>\*/)
  | (?P<word>[0-9A-Za-z_$\u00a1-\ufffc\ufffe\uffff]+)
  | (?P<space>{space}+)
  | (?P<mark>[!-~])
  | (?P<strange>.)
"""
_STRINGS = r"""'(?:[^'\\]++|''|\\.)*+'|"(?:[^"\\]++|""|\\.)*+\""""
_STRINGS_PLAIN = r"""'(?:[^']++|'')*+'|"(?:[^"]++|"")*+\""""
_ESCAPED = re.compile(_LEXEME.format(strings=_STRINGS, space=_SPACE), re.VERBOSE | re.DOTALL)
_PLAIN = re.compile(_LEXEME.format(strings=_STRINGS_PLAIN, space=_SPACE), re.VERBOSE | re.DOTALL)
NO_BACKSLASH_ESCAPES = 1 << 20
ANSI_QUOTES = 1 << 2
STRICT = 3 << 21  # STRICT_TRANS_TABLES or STRICT_ALL_TABLES
# REAL_AS_FLOAT, POSTGRESQL, ORACLE, MSSQL, DB2, MAXDB: names of types mean other types. With EMPTY_STRING_IS_NULL ''
# means NULL (MariaDB manual: SQL_MODE).
RENAMING = 1 | 0x1F << 8 | 1 << 32
_SOURCE_VERSION = 101100
_MYSQL_VERSION = 80000
_NOT_DECODED = "\ufffd"
_SHOWN_MAX = 80

# Why a statement stops a feed that is none of those known.
NOT_UNDERSTOOD = "a statement that names it is not one that is known to leave rows alone"


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


def readings(sql: str, *, mysql: bool = False, sql_mode: int | None = None) -> tuple[tuple[Word, ...], ...]:
    """The one or two ways in which the server may have read `sql`, without the prefix SET STATEMENT ... FOR.

    Executable comments are opened. One that asks for a version that this server may not have is also left
    out, as a second reading. `sql_mode`: as the event has it, None when it is not known. Raises AmbiguousText.
    """
    if "sql_mode" in sql.lower():
        sql_mode = None  # SET STATEMENT sql_mode: read in the session's, logged with its own
    try:
        run = _words(sql, all_run=True, mysql=mysql, sql_mode=sql_mode)
    except AmbiguousText as why:
        raise AmbiguousText(str(why), _as_far(sql, why, mysql=mysql, sql_mode=sql_mode)) from None
    left_out = _words(sql, all_run=False, mysql=mysql, sql_mode=sql_mode)
    both = (run,) if run == left_out else (run, left_out)
    return tuple(_without_settings(words) for words in both)


def _as_far(sql: str, why: AmbiguousText, *, mysql: bool, sql_mode: int | None) -> Sequence[Word]:
    """The words before the place that cannot be read, if they are the same without executable comments."""
    try:
        _words(sql, all_run=False, mysql=mysql, sql_mode=sql_mode)
    except AmbiguousText as other:
        return why.words if other.words == why.words else ()
    return ()


def _words(sql: str, *, all_run: bool, mysql: bool, sql_mode: int | None) -> tuple[Word, ...]:
    lexeme = _PLAIN if sql_mode is not None and sql_mode & NO_BACKSLASH_ESCAPES else _ESCAPED
    quoted_names = sql_mode is None or bool(sql_mode & ANSI_QUOTES)
    words: list[Word] = []
    open_comments: list[bool] = []  # of each, whether the server runs what is in it
    skipped_until = 0
    for match in lexeme.finditer(sql):
        kind, text = match.lastgroup, match[0]
        if match["open"] is not None:
            surely, runs = _runs(match["flavour"], int(match["version"] or 0), all_run=all_run, mysql=mysql)
            open_comments.append(runs)
            if not surely:
                skipped_until = _end_of_skipped(sql, match.end(), words)
        elif kind == "close":
            if not open_comments:
                raise AmbiguousText("a comment ends that did not begin", words)
            open_comments.pop()
        elif kind not in ("space", "comment") and all(open_comments):
            if kind == "string" and sql_mode is None and re.search(r"\\['\"]", text):
                raise AmbiguousText("a backslash stands before a quote", words)
            words.append(_word(kind, text, words, quoted_names=quoted_names))
        if match.start() < skipped_until < match.end() and kind != "close":
            raise AmbiguousText("an executable comment ends elsewhere where it is not run", words)
    if open_comments:
        raise AmbiguousText("an executable comment does not end", words)
    while words and words[-1] == Word(";"):
        words.pop()
    return tuple(words)


def _runs(flavour: str, version: int, *, all_run: bool, mysql: bool) -> tuple[bool, bool]:
    """Whether the server is known to run an executable comment, and whether it does so in this reading.

    MariaDB skips versions above its own, and 50700 to 99999 as MySQL's (manual: Comment Syntax). For MySQL the
    comments that are MariaDB's own are plain ones.
    """
    if mysql:
        surely = flavour == "" and version <= _MYSQL_VERSION
        return surely, flavour == "" and (all_run or surely)
    surely = version <= _SOURCE_VERSION and (flavour == "M" or not 50700 <= version <= 99999)
    return surely, all_run or surely


def _end_of_skipped(sql: str, start: int, words: Sequence[Word]) -> int:
    """Behind the first `*/`, where a server that skips a comment goes on; it looks for nothing but comments in it."""
    end = sql.find("*/", start)
    if end < 0 or "/*" in sql[start:end]:
        raise AmbiguousText(
            "an executable comment that may not be run holds another one, or does not end", words
        )
    return end + 2


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
        if _NOT_DECODED in text:
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
