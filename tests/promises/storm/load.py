"""What is written while the storm blows: random transactions, XA, sysbench, and rows of the storm's own tables.

DDL takes tables and columns away from writers; a transaction that meets that is rolled back.
"""

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pymysql

from catchment.demo.server import PrivateServer
from catchment.demo.writers import Connect, Session, Transact, Writer, Writers
from tests.world.patience import until
from tests.world.servers.debian import NotHere
from tests.world.workload import MoveBetweenShards, RandomTransactions, XaTransactions

KEYS = 100  # of random transactions
EVENTS = 400  # the keys of the storm's own tables
SBTEST_ROWS = 200
_WEATHER = {
    *(1205, 1213, 1020),  # locks, and rows that changed since they were read
    *(1062, 1048, 1364),  # keys, and columns that must have a value
    *(1146, 1054, 1412, 1136),  # no such table or column, or not as it was
    *(1264, 1265, 1292, 1366, 1406),  # a column that does not take the value any more
    1526,  # no partition
    4091,  # a temporary table in an XA transaction, on MySQL since 8.0.29
    1305,  # a savepoint of a transaction that the server has rolled back
}
_WAITS = "SET innodb_lock_wait_timeout = 1"
_XA_WAITS = "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"  # an ALTER waits for what is prepared
_SCRIPT = Path("/usr/share/sysbench/oltp_write_only.lua")


def weathered(transact: Transact) -> Transact:
    """The same, rolled back where DDL was in its way."""

    def one(sessions: Sequence[Session], rng: random.Random) -> int:
        try:
            return transact(sessions, rng)
        except pymysql.err.MySQLError as error:
            if error.args[0] not in _WEATHER:
                raise
            for session in sessions:
                session.rollback()
            return 0

    return one


def own_rows(tables: Mapping[str, str]) -> Transact:
    """Rows of tables by their integer keys: inserted, changed and deleted; values for columns that came by DDL."""

    def transact(sessions: Sequence[Session], rng: random.Random) -> int:
        table = rng.choice(list(tables))
        key, low = tables[table], rng.randint(1, EVENTS)
        with sessions[0].cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table} LIMIT 1")
            names = [str(column[0]) for column in cursor.description or ()]
            added = [name for name in names if name.startswith("x")]
            if added and rng.random() < 0.5:
                value = rng.choice((None, "1", str(rng.randrange(1000))))
                within = f"WHERE {key} BETWEEN {low} AND {low + 20}"
                return cursor.execute(f"UPDATE {table} SET {rng.choice(added)} = %s {within}", (value,))
            if "what" not in names:
                return 0
            if rng.random() < 0.3:
                return cursor.execute(f"DELETE FROM {table} WHERE id BETWEEN {low} AND {low + 5}")
            return cursor.execute(
                f"REPLACE INTO {table} (id, k, what) VALUES (%s, %s, 'rain')", (low, low % 7)
            )

    return transact


class Load:
    """All writers of a storm, held together."""

    def __init__(
        self, servers: Mapping[str, PrivateServer], schema: str, tables: Mapping[str, str], seed: int
    ) -> None:
        self._servers, self._schema = servers, schema
        connects = [self._connector(server, _WAITS) for server in servers.values()]
        random_rows = weathered(RandomTransactions(KEYS))
        written: list[tuple[Sequence[Connect], Transact, float]]
        written = [([connect], random_rows, 6.0) for connect in connects]
        written += [([connect], weathered(own_rows(tables)), 8.0) for connect in connects]
        written.append((connects, weathered(MoveBetweenShards(KEYS)), 3.0))
        self._rows = _writers(written, seed * 100)
        xa = [self._connector(server, _XA_WAITS) for server in servers.values()]
        self._xa = _writers(
            [([connect], weathered(XaTransactions(connect, KEYS)), 4.0) for connect in xa], seed * 100 + 50
        )
        self._benches: list[subprocess.Popen[bytes]] = []

    @contextmanager
    def blowing(self) -> Iterator[None]:
        """All but XA transactions is written inside the block."""
        with self._rows:
            self._begin()
            try:
                yield
            finally:
                self._end()

    def xa(self) -> Writers:
        """XA transactions, for a feed that has begun: the first cut waits until nothing is prepared."""
        return self._xa

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is written inside the block."""
        with self._rows.paused(), self._xa.paused():
            self._end()
            yield
        self._begin()

    def _begin(self) -> None:
        self._benches = [
            subprocess.Popen(
                sysbench(server, self._schema, "--rate=6", "--time=0", "--mysql-ignore-errors=all", "run"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for server in self._servers.values()
        ]

    def _end(self) -> None:
        ended = [bench.args for bench in self._benches if bench.poll() is not None]
        for bench in self._benches:
            bench.kill()
            bench.wait()
        self._benches = []
        for server in self._servers.values():
            _await_end(server)
        assert not ended, f"sysbench ended by itself: {ended}"

    def _connector(self, server: PrivateServer, waits: str) -> Callable[[], Session]:
        return lambda: server.connect(database=self._schema, init_command=waits)


def _writers(written: Sequence[tuple[Sequence[Connect], Transact, float]], seed: int) -> Writers:
    """Of sessions, what is done in them, and how often a second."""
    return Writers(
        [
            Writer(connects, transact, seed=seed + number, rate=rate)
            for number, (connects, transact, rate) in enumerate(written)
        ]
    )


def sysbench(server: PrivateServer, schema: str, *arguments: str) -> list[str]:
    """The command of sysbench's writes. Raises NotHere."""
    if shutil.which("sysbench") is None or not _SCRIPT.exists():
        raise NotHere("sysbench is not installed (Debian's package sysbench)")
    login = server.login("root")
    command = ["sysbench", str(_SCRIPT), f"--mysql-socket={server.socket}", f"--mysql-user={login['user']}"]
    command += [f"--mysql-password={login['password']}", f"--mysql-db={schema}", "--tables=1"]
    # A statement that is prepared once is not, where its table has gone meanwhile.
    return [*command, f"--table-size={SBTEST_ROWS}", "--db-ps-mode=disable", *arguments]


def _await_end(server: PrivateServer) -> None:
    """Wait until a killed sysbench's last statements are through: they come by the socket, alone."""
    query = (
        "SELECT COUNT(*) FROM information_schema.processlist WHERE host = 'localhost' AND command <> 'Daemon'"
    )
    query += " AND user = 'root'"
    until("sysbench's sessions have ended", lambda: not server.sql(query)[0][0])
