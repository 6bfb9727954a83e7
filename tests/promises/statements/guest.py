"""A session in which foreign statements run, without any privilege outside of its two schemas.

A statement that names what is not there is run again with names of the stage in its place, as the server's own
complaints tell, so that most statements reach something.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pymysql
from pymysql.constants import SERVER_STATUS

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from tests.promises.statements.corpus import number_of
from tests.promises.statements.stage import COLUMNS, GUEST, KINDS, WIDTHS

USER, PASSWORD = GUEST, "guest"
_PRIVILEGES = (
    "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, EXECUTE,"
    " CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, TRIGGER"
)
_TRIES = 12
_GONE = (0, 2006, 2013, 2014)
_READ_SECONDS = 30

_TABLE = re.compile(r"(?:Table|table) '(?:(?:test|plain)\.)?([^'.]+)'", re.I)
_COLUMN = re.compile(r"column '(?:[^']*\.)?([^'.]+)'", re.I)
_ROUTINE = re.compile(r"(FUNCTION|PROCEDURE) (?:[\w$]+\.)?(\S+) does not exist", re.I)
_COUNT = re.compile(r"(FUNCTION|PROCEDURE) (?:[\w$]+\.)?(\S+); expected \d+, got (\d+)", re.I)
_CHOSEN = "`shop`.`t1`"
# What cannot be done with a view, and what stands in its place then.
_NOT_HERE = (1288, 1347, 1348, 1394, 1395, 1423, 1471, 1393)
_NOT_WRITTEN = {"joined": "fires", "functional": "calls"}


def allow(server: PrivateServer) -> None:
    """Make the guest's account; the feed's user may see what is stored."""
    server.sql(
        f"GRANT SHOW VIEW, TRIGGER ON *.* TO {FEED_USER}@'%'",
        f"CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}'",
        *(f"GRANT {_PRIVILEGES} ON {schema}.* TO {USER}@'%'" for schema in ("test", "shop", "plain")),
    )


class Guest:
    """Runs statements in a session of its own; `schema` is its default schema."""

    def __init__(self, server: PrivateServer, schema: str, settings: str = "") -> None:
        self._server, self._schema, self._settings = server, schema, settings
        self._session: pymysql.connections.Connection[Any] | None = None

    def begin(self) -> None:
        """Go on in a new session."""
        self.close()
        login = {**self._server.login(), "user": USER, "password": PASSWORD}
        self._session = pymysql.connect(
            **login,
            database=self._schema,
            charset="utf8mb4",
            autocommit=True,
            read_timeout=_READ_SECONDS,
            local_infile=False,
        )
        if self._settings:
            self.run(self._settings)

    def run(self, *statements: str) -> None:
        """Run statements and read all that they answer; raises MySQLError."""
        if self._session is None:
            self.begin()
        assert self._session is not None
        try:
            with self._session.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                    while cursor.nextset():
                        pass
        except (pymysql.err.MySQLError, UnicodeError, ValueError) as error:
            if not isinstance(error, pymysql.err.MySQLError) or error.args[0] in _GONE:
                with suppress(
                    pymysql.err.MySQLError
                ):  # the server may go on with what we have given up, for hours
                    self._server.sql(f"KILL {self._session.thread_id()}")  # type: ignore[no-untyped-call]
                self.begin()
            raise pymysql.err.OperationalError(*error.args) from error

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, as the server's last answer says."""
        status = self._session.server_status if self._session else 0  # type: ignore[attr-defined]
        return bool(status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def settle(self, *, commit: bool = True) -> None:
        """End the transaction, if one is open."""
        with suppress(pymysql.err.MySQLError):
            self.run("COMMIT" if commit else "ROLLBACK")

    def corrected(self, statement: str, manner: Callable[[str], tuple[str, ...]]) -> str:
        """Run a statement in a `manner`, with names of the stage where it names what is not there; as it was run.

        Raises MySQLError when no correction helps.
        """
        correction = _Correction(statement)
        for _ in range(_TRIES):
            text = correction.text
            try:
                self.run(*manner(text))
                return text
            except pymysql.err.MySQLError as error:
                self.settle(commit=False)
                if not correction.learn(int(error.args[0]), str(error.args[-1])):
                    raise
        raise pymysql.err.OperationalError(0, "no correction helps")

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            with suppress(pymysql.err.MySQLError, OSError):
                self._session.close()
            self._session = None


class _Correction:
    """A statement and the names that are to stand for those in it."""

    def __init__(self, statement: str) -> None:
        self._statement = statement
        self._names: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._width = 0

    @property
    def text(self) -> str:
        text = self._statement
        for name, other in self._names.items():
            text = _renamed(text, name, other)
        for name, kind in self._kinds.items():
            other = kind if kind == _CHOSEN else f"{kind}{WIDTHS[self._width]}"
            text = _renamed(text, name, other)
        return text

    def learn(self, code: int, message: str) -> bool:
        """Take what the server says is wrong; whether that leads to another text."""
        for codes, said, learn in (
            ((1146, 1051, 1109), _TABLE, self._learn_table),
            ((1054,), _COLUMN, self._learn_column),
            ((1305,), _ROUTINE, self._learn_routine),
            ((1318,), _COUNT, self._learn_count),
        ):
            if code in codes and (found := said.search(message)):
                return learn(*found.groups())
        if code == 1136:
            return self._narrow()
        return code in _NOT_HERE and self._turn_to_tables()

    def _narrow(self) -> bool:
        """Take tables and views of fewer columns; the chosen table has one width, a view over it has several."""
        self._kinds = {name: "over" if kind == _CHOSEN else kind for name, kind in self._kinds.items()}
        before, widest = self._width, len(WIDTHS) - 1
        self._width = min(before + 1, widest) if self._kinds else before
        return self._width != before

    def _turn_to_tables(self) -> bool:
        """Take tables in the place of views that cannot be written."""
        before = self._kinds
        self._kinds = {name: _NOT_WRITTEN.get(kind, kind) for name, kind in before.items()}
        return self._kinds != before

    def _learn_column(self, name: str) -> bool:
        return self._learn(name, self._column())

    def _column(self) -> str:
        """A column of the stage that no other name stands for yet."""
        free = [one for one in COLUMNS[: WIDTHS[self._width]] if one not in self._names.values()]
        return (free or COLUMNS)[0]

    def _learn_routine(self, kind: str, name: str) -> bool:
        return self._learn(name, "f1" if kind.upper() == "FUNCTION" else "p1")

    def _learn_count(self, kind: str, name: str, count: str) -> bool:
        """The stage's routines are `f0` to `f3` and `p0` to `p3`, by how many arguments they take."""
        old = next((old for old, new in self._names.items() if new == name), name)
        return int(count) < 4 and self._learn(old, f"{'f' if kind.upper() == 'FUNCTION' else 'p'}{count}")

    def _learn_table(self, name: str) -> bool:
        if name in self._kinds or not name:
            return False
        choice = number_of(self._statement + name, len(KINDS) + 1)
        self._kinds[name] = (*KINDS, _CHOSEN)[choice]
        return self.text != self._statement

    def _learn(self, name: str, other: str) -> bool:
        if self._names.get(name) == other or name == other:
            return False
        self._names[name] = other
        return True


def _renamed(text: str, name: str, other: str) -> str:
    """The text with another name in the place of one, outside of strings as far as that can be told by its edges."""
    word = re.escape(name)
    schema = r"(?:`?(?:test|mysqltest\d?)`?\s*\.\s*)?"
    pattern = rf"(?<![\w$@'\"`]){schema}(?:`{word}`|{word})(?![\w$'\"`])"
    return re.sub(pattern, lambda _: other, text, flags=re.I)
