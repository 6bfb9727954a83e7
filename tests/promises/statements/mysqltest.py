"""The SQL statements of a file of MariaDB's or MySQL's own test suite (the language of `mysqltest`).

Commands of the language are left out, and what stands in blocks is taken once. Statements with variables of the
language are left out, too: nobody gives them a value here.
"""

import functools
import re
from collections.abc import Iterator

# Words that begin a command of `mysqltest` without `--` before it.
_COMMAND = re.compile(
    r"(?:en|dis)able_\w+|append_file|cat_file|change_user|character_set|chmod|connect|connection|copy_files?\w*|dec|delimiter"
    r"|die|diff_files|dirty_close|disconnect|echo|end|end_timer|error|eval|exec\w*|exit|expr|file_exists|force-\w+"
    r"|horizontal_results|inc|let|list_files\w*|lowercase_result|mkdir|move_file|output|partially_sorted_result|perl|ping"
    r"|query|query_\w+|real_sleep|reap|remove_files?\w*|replace_(?:column|numeric_round|regex|result)|require"
    r"|reset_connection|result_format|rmdir|save_master_pos|send|send_\w+|shutdown_server|skip|sleep|sorted_result|source"
    r"|start_timer|sync_\w+|system|vertical_results|wait_for_slave_to_stop|write_file",
    re.IGNORECASE,
)
_TO_MARK = ("perl", "write_file", "append_file")
_BLOCK = re.compile(r"[{}]|(?:if|while)\s*\(.*", re.I)
_VARIABLE = re.compile(r"\$[A-Za-z_]")
_LONGEST = 6000  # characters; longer ones fill tables and say nothing new


def statements(text: str) -> Iterator[str]:
    """The statements of a file in order."""
    lines = iter(text.splitlines())
    delimiter, pending = ";", ""
    for line in lines:
        bare = line.strip()
        if not pending:
            if not bare or bare.startswith("#") or _BLOCK.fullmatch(bare):
                continue
            if bare.startswith("--"):
                delimiter = _commanded(bare[2:], lines, delimiter)
                continue
        pending += line + "\n"
        while (end := _end(pending, delimiter)) >= 0:
            statement, pending = pending[:end].strip(), pending[end + len(delimiter) :].lstrip()
            word = re.split(r"[\s(;]", statement, maxsplit=1)[0].lower()
            if _COMMAND.fullmatch(word):
                delimiter = _commanded(statement, lines, delimiter)
            elif statement and len(statement) <= _LONGEST and not _VARIABLE.search(statement):
                yield statement
        if pending.startswith(("#", "--")) or len(pending) > _LONGEST:
            pending = ""  # a comment behind a statement; a quote that is none


def _commanded(command: str, lines: Iterator[str], delimiter: str) -> str:
    """Follow a command so far as it matters for reading on; the delimiter from there on."""
    word, _, rest = command.strip().partition(" ")
    if word.lower() == "delimiter":
        return rest.strip().removesuffix(delimiter).strip() or delimiter
    if word.lower() in _TO_MARK:
        mark = (rest.split() or ["EOF"])[-1] if word.lower() != "perl" else (rest.strip("; ") or "EOF")
        mark = mark if mark.isupper() else "EOF"
        for line in lines:
            if line.strip() == mark:
                break
    return delimiter


@functools.cache
def _marks(delimiter: str) -> re.Pattern[str]:
    quoted = r"""'(?:\\.|[^'\\])*(?:'|\Z)|"(?:\\.|[^"\\])*(?:"|\Z)|`[^`]*(?:`|\Z)"""
    return re.compile(rf"{quoted}|({re.escape(delimiter)})", re.DOTALL)


def _end(text: str, delimiter: str) -> int:
    """Where the delimiter stands that ends the statement; -1 when it has not come yet."""
    return next((mark.start() for mark in _marks(delimiter).finditer(text) if mark[1]), -1)
