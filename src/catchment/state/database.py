"""The state store's tables, and the one edge where errors of SQLAlchemy and its drivers become StateError.

SQLite keeps its rollback journal (no WAL), so that between two writes the store is one file that can be
copied. A connection never makes a file, and stays open as long as that file is the one at its path. So a store that
was deleted under a running feed is an error at once. Otherwise the feed would write into a file that nobody can see.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    QueuePool,
    String,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DisconnectionError, NoSuchModuleError, SQLAlchemyError

from catchment import world
from catchment.model.errors import ConfigError, StateAway, StateError
from catchment.model.version import __version__
from catchment.state.refusals import advice

# Of layout 1 are stores of records without a version; they become layout 2 with the first record that is written.
SCHEMA_VERSION = 2
_KNOWN_VERSIONS = (1, SCHEMA_VERSION)
_BUSY_SECONDS = 10.0
_CONNECT_SECONDS = 10
# Longer than a server waits for a lock of a row (innodb_lock_wait_timeout is 50 s): its own word comes first.
_ANSWER_SECONDS = 60
# Threads of a run use the store at the same time: its loop, who applies, the lease.
_KEPT_OPEN = 4
_MAKE_ATTEMPTS = 5
_MAKE_PAUSE_SECONDS = 0.1
_RECORD_BYTES_MAX = 2**32 - 1  # makes it a LONGBLOB on MySQL

metadata = MetaData()

version_table = Table(
    "catchment_version",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)
record_table = Table(
    "catchment_record",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("record", LargeBinary(_RECORD_BYTES_MAX), nullable=False),
)
lease_table = Table(
    "catchment_lease",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("fence", BigInteger, nullable=False),
    Column("owner", String(512), nullable=False),
    Column("renewals", BigInteger, nullable=False),
)
# Stores of earlier programs lack it: a run adds it, readers do without.
journal_table = Table(
    "catchment_journal",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("record", LargeBinary(_RECORD_BYTES_MAX), nullable=False),
)
# The same.
order_table = Table(
    "catchment_order",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("asked", LargeBinary(_RECORD_BYTES_MAX), nullable=False),
    Column("answer", LargeBinary(_RECORD_BYTES_MAX), nullable=True),
)
# The same; a server adds it.
subscriber_table = Table(
    "catchment_subscriber",
    metadata,
    Column("feed", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("changes", BigInteger, nullable=False),
    Column("record", LargeBinary(_RECORD_BYTES_MAX), nullable=False),
)
# The same. What runs claim of the sessions of a server, across feeds.
session_table = Table(
    "catchment_session",
    metadata,
    Column("server", String(300), primary_key=True),
    Column("feed", String(64), primary_key=True),
    Column("fence", BigInteger, primary_key=True, autoincrement=False),
    Column("held", Integer, nullable=False),
    Column("least", Integer, nullable=False),
    Column("most", Integer, nullable=False),
    Column("ceiling", Integer, nullable=False),
    Column("since_us", BigInteger, nullable=False),
)
_VERSION = select(version_table.c.version)
_NEEDED = {table.name for table in (version_table, record_table, lease_table)}


class Database:
    """Engine and tables of one state store. Every method raises StateError, or ConfigError for options in the URL
    that its driver does not take, and nothing else."""

    def __init__(self, url: str) -> None:
        """The store at a SQLAlchemy URL; connects to nothing yet."""
        self._url = make_url(url)
        self.file = _sqlite_file(self._url)
        try:
            with self._options():
                self._engine = _engine(self._url)
        except (ImportError, NoSuchModuleError) as fault:
            raise StateError(
                f"state store {self}: no driver for {self._url.drivername} is installed ({fault})"
            ) from fault
        except SQLAlchemyError as fault:
            raise self._state_error(fault) from fault

    def open(self, *, create: bool) -> None:
        """Check that it is a state store of ours; with `create` make file and tables when they are missing."""
        if create and self.file is not None:
            self._make_file(self.file)
        made = self.is_made()
        if create:
            self._make_tables()
        elif not made:
            raise StateError(f"there is no state store at {self}: the feed has not run yet")
        self._check_version()

    def is_made(self) -> bool:
        """Whether the tables are there without which nothing can be read, and the version, which is written last.
        Writes nothing."""
        return self.tables() >= _NEEDED and self._version() is not None

    def tables(self) -> set[str]:
        """Names of all tables in the database, others' too; none where there is no file. Writes nothing."""
        try:
            if self.file is not None and not self.file.exists():
                return set()
        except OSError as fault:
            raise StateError(f"state store {self}: {fault.strerror}; check `state`") from fault
        with self._edge(), self._options(), self._engine.connect() as connection:
            return set(inspect(connection).get_table_names())

    def must_be_makeable(self) -> None:
        """Raise StateError when the user may not make the tables; asks MySQL and MariaDB alone. Writes nothing:
        a statement that is only prepared is checked for privileges (seen on MariaDB 10.11 and MySQL 8.0)."""
        if self._url.get_backend_name() not in ("mysql", "mariadb"):
            return
        with self._edge(), self._engine.connect() as connection:
            for table in metadata.tables:
                connection.exec_driver_sql(f"PREPARE catchment FROM 'CREATE TABLE {table} (id INT)'")

    def __str__(self) -> str:
        """The URL without its password, and without options, among which another may stand."""
        return str(self.file) if self.file else self._url.set(query={}).render_as_string(hide_password=True)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that commits at the end of the block."""
        world.step("before a transaction of the state store")
        with self._edge(), self._engine.begin() as connection:
            yield connection
        world.step("behind a transaction of the state store")

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A transaction that reads as of one moment and writes nothing."""
        # PostgreSQL's default, and a setting of MySQL, give each statement a moment of its own; SQLite never does.
        level = {} if self.file is not None else {"isolation_level": "REPEATABLE READ"}
        with (
            self._edge(),
            self._engine.connect() as connection,
            connection.execution_options(**level).begin(),
        ):
            yield connection

    def close(self) -> None:
        """Close the connections that are kept."""
        self._engine.dispose()

    def _make_file(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600)
        except OSError as fault:
            raise StateError(
                f"state store {file}: cannot be made ({fault.strerror}); check `state`"
            ) from fault

    def _make_tables(self) -> None:
        """Several runners may do this at once: a slower one finds tables and row in place when it tries
        again."""
        for attempt in range(_MAKE_ATTEMPTS):
            try:
                with self.transaction() as connection:
                    metadata.create_all(connection)
                    if connection.scalar(select(version_table.c.version)) is None:
                        connection.execute(insert(version_table).values(id=1, version=SCHEMA_VERSION))
                return
            except StateError:
                if attempt == _MAKE_ATTEMPTS - 1:
                    raise
                world.sleep(_MAKE_PAUSE_SECONDS)

    def _version(self) -> int | None:
        with self.transaction() as connection:
            return connection.scalar(select(version_table.c.version))

    def _check_version(self) -> None:
        version = self._version()
        if version not in _KNOWN_VERSIONS:
            raise StateError(
                f"state store {self} has layout {version}, and this Catchment ({__version__}) knows layouts up to "
                f"{SCHEMA_VERSION}: use the one that wrote it, or a later one, see docs/upgrade.md"
            )

    @contextmanager
    def _options(self) -> Iterator[None]:
        """What a driver makes of options that it does not take, or whose values it cannot use."""
        try:
            yield
        except (TypeError, ValueError, LookupError, AttributeError, OSError) as fault:
            raise ConfigError(
                f"state: {self}: {self._url.drivername} does not take its options, or not their values "
                f"({', '.join(self._url.query) or 'none'})"
            ) from fault

    @contextmanager
    def _edge(self) -> Iterator[None]:
        # SQLAlchemy 2 lets the driver's own errors through where it sets the isolation level of a connection.
        drivers = self._engine.dialect.loaded_dbapi.Error
        try:
            yield
        except (SQLAlchemyError, drivers) as fault:
            if self.file is not None:
                self._engine.dispose()  # the fault may be of the open file: the next transaction opens it again
            raise self._state_error(fault) from fault

    def _state_error(self, fault: Exception) -> StateError:
        passes, helps = advice(fault)
        said = f"state store {self}: {getattr(fault, 'orig', None) or fault}; {helps}"
        return StateAway(said) if passes else StateError(said)


def mark_layout(connection: Connection) -> None:
    """Say that records of our layout are in the store: earlier programs refuse it from now on.

    The row is looked at first, since feeds that share a store would wait for one another to write it.
    """
    version = connection.scalar(_VERSION)
    if version is not None and version < SCHEMA_VERSION:
        connection.execute(update(version_table).values(version=SCHEMA_VERSION))


def _sqlite_file(url: URL) -> Path | None:
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def _connect_args(url: URL) -> dict[str, Any]:
    """What a driver gets beside what the URL says: a server that hangs is given up, as one that is gone."""
    driver = url.get_driver_name()
    given: dict[str, Any] = {}
    if driver == "pymysql":
        given = {
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _ANSWER_SECONDS,
            "write_timeout": _ANSWER_SECONDS,
        }
    elif driver.startswith("psycopg"):
        given = {"connect_timeout": _CONNECT_SECONDS, "tcp_user_timeout": _ANSWER_SECONDS * 1000}
    given = {name: value for name, value in given.items() if name not in url.query}
    if url.password and driver == "pymysql":
        given["password"] = url.password.encode()  # PyMySQL would send a text in Latin-1
    return given


def _engine(url: URL) -> Engine:
    file = _sqlite_file(url)
    if file is None:
        return create_engine(url, pool_pre_ping=True, connect_args=_connect_args(url))

    engine = create_engine(
        url, creator=lambda: _opened(file), poolclass=QueuePool, pool_size=_KEPT_OPEN, max_overflow=-1
    )
    event.listen(engine, "checkout", lambda connection, *_: _must_be_the_file(connection, file))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
    return engine


class _File(sqlite3.Connection):
    """An open file. `seen`: by which process it was opened, and its device and number just before that."""

    seen: tuple[int, int, int] | None = None


def _opened(file: Path) -> _File:
    seen = _seen(file)
    connection = sqlite3.connect(
        f"file:{quote(str(file))}?mode=rw",
        uri=True,
        timeout=_BUSY_SECONDS,
        check_same_thread=False,
        factory=_File,
    )
    connection.execute("PRAGMA synchronous=EXTRA")  # a commit survives a power cut just after it
    connection.isolation_level = None  # the driver would leave SELECTs outside of transactions
    connection.seen = seen
    return connection


def _must_be_the_file(connection: _File, file: Path) -> None:
    """Have the pool open the file again where another one stands in its place: to what was moved away or deleted nobody
    must write. No other file can have the number of one that is open. A connection is of no use to a process that was
    forked since (SQLite: How To Corrupt, section 2.6).

    Each transaction reads what it needs from the file, as if it had opened it: SQLite would take pages that it
    remembers for those of a file that was damaged, or written over, in its place.
    """
    if connection.seen is None or connection.seen != _seen(file):
        raise DisconnectionError(f"{file} is another file")
    connection.execute("PRAGMA shrink_memory")


def _seen(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return os.getpid(), found.st_dev, found.st_ino
