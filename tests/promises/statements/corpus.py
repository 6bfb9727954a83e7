"""Which statements of a server's own test suite are run, chosen by a stable hash."""

import functools
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.promises.statements.mysqltest import statements

# Suites about the server's own files, clusters and plugins say nothing about tables.
_SUITES = re.compile(
    r"archive|binlog(?:_n?o?gtid)?|collations|compat|engines|funcs_1|gcol|handler|heap|innodb(?:_gis|_fts|_undo|_zip)?"
    r"|json(?:_dv)?|jp|maria|opt_trace|parts|period|roles|rpl(?:_n?o?gtid)?|s3|sql_sequence|sysschema|vcol|versioning"
)
# What ends, stops or locks the server or this session; the rest that would do harm needs privileges that nobody has.
_HARMFUL = re.compile(
    r"\b(?:SLEEP|BENCHMARK|GET_LOCK|SHUTDOWN|KILL|OUTFILE|DUMPFILE|LOAD_FILE|HANDLER|HELP|USE|CHANGE|XA|BINLOG"
    r"|(?:RE|UN)?LOCK\s+(?:TABLES?|INSTANCE)|FLUSH|RESET|PURGE|(?:UN)?INSTALL|MASTER_POS_WAIT|MASTER_GTID_WAIT|BACKUP"
    r"|WAIT_FOR_EXECUTED_GTID_SET|SOURCE_POS_WAIT|WITH\s+RECURSIVE|GLOBAL|PERSIST|DEBUG_SYNC|DEBUG_DBUG|EVENT"
    r"|GRANT|REVOKE|DATABASE|SCHEMA|MYSQL\s*\.|SEQ_\d+_TO_\d{4,}|MAX_STATEMENT_TIME|LOCK_WAIT_TIMEOUT"
    r"|PASSWORD|IDENTIFIED|ALTER\s+USER)\b",
    re.IGNORECASE,
)
# Statements that change no rows by themselves are many: this many of each first word are enough.
_OF_A_KIND = {
    "INSERT": 1100, "UPDATE": 1200, "DELETE": 900, "REPLACE": 500, "CREATE": 400, "SELECT": 400, "CALL": 350,
    "WITH": 300, "ANALYZE": 400, "ALTER": 250, "DROP": 200,
}  # fmt: skip
_OTHERS = 120


@functools.cache
def suite_files(suite: Path) -> list[Path]:
    """The files of the suite that are about tables, those of `main` (MySQL: `t`) among them."""
    found = []
    for file in suite.rglob("*.test"):
        part = file.relative_to(suite).parts
        if part[0] in ("main", "t") or (part[0] == "suite" and _SUITES.fullmatch(part[1])):
            found.append(file)
    return sorted(found, key=lambda file: _rank(str(file.relative_to(suite))))


@functools.cache
def a_tenth(suite: Path) -> list[Path]:
    """Every tenth of the files, the same ones always."""
    return [file for file in suite_files(suite) if int(_rank(str(file.relative_to(suite))), 16) % 10 == 0]


def of_file(file: Path) -> list[str]:
    """The statements of a file that do no harm, in order."""
    return [
        one for one in statements(file.read_text(errors="replace")) if not _HARMFUL.search(one) and _head(one)
    ]


def distinct(files: list[Path], share: int = 1) -> Iterator[str]:
    """Each statement once, in an order that mixes all files, of each first word so many; `share`: a part of that."""
    taken: Counter[str] = Counter()
    for one in _shapes(tuple(files)):
        head = _head(one)
        if taken[head] < _OF_A_KIND.get(head, _OTHERS) // share:
            taken[head] += 1
            yield one


@functools.cache
def _shapes(files: tuple[Path, ...]) -> list[str]:
    met = {_shape(one): one for file in files for one in of_file(file)}
    return sorted(met.values(), key=_rank)


def number_of(text: str, among: int) -> int:
    """A number below `among`, the same one always for the same text."""
    return int(_rank(text), 16) % among


def _rank(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _head(statement: str) -> str:
    words = re.findall(r"\w+", statement[:200])
    return words[0].upper() if words else ""


def _shape(statement: str) -> str:
    """The statement without its numbers and strings: one of each shape is enough."""
    return re.sub(r"\d+|'[^']*'|\"[^\"]*\"|\s+", "#", statement.lower())
