"""Held commits: transactions that stand in the log while no SELECT shows them.

With semi-sync AFTER_SYNC a commit is written to the log, then waits for a replica's answer, and only then
becomes visible (MariaDB manual: Semisynchronous Replication). With `wait_no_slave` and no replica it waits
for the whole timeout, or until the setting is turned off. What MariaDB 10.11 was seen to do meanwhile:

- every other commit of the server queues behind the held one. The next to come writes to the log, too, and
  then keeps the log's lock: SHOW MASTER STATUS waits. SELECT and consistent snapshots do not;
- FLUSH BINARY LOGS makes the new file at once and returns when the held commit is through;
- after a timeout the server holds no more commits until semi-sync is turned off and on again (done here).

MySQL with the options of `mysql_options` differs: SHOW BINARY LOG STATUS waits only while other commits write,
and FLUSH BINARY LOGS waits for the held ones and keeps the log's lock meanwhile; the file begins after them.

MySQL 8.0 comes without the plugin. There `binlog_group_commit_sync_delay` holds a commit between the write of its
events and its fsync (MySQL manual), at most for a second, and `release` is for later commits only. Where
`sync_binlog` is not 1 dumps serve what is not synced (seen on 8.0.15). Later commits join those that are held.
"""

import secrets
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from catchment.demo.server import PrivateServer
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

HOLD_MS = int(PATIENCE_SECONDS * 1000)  # who holds commits releases them long before
_DELAY = "binlog_group_commit_sync_delay"
_LONGEST_DELAY = 1_000_000  # microseconds


class Background(threading.Thread):
    """Statements in a session of their own; `finish` waits for them and raises their error."""

    def __init__(self, server: PrivateServer, statements: Sequence[str], database: str | None = None) -> None:
        super().__init__(daemon=True)
        self._server, self._statements, self._database = server, statements, database
        self._error: Exception | None = None

    def run(self) -> None:
        """The thread's work; call `start`."""
        try:
            self._server.sql(*self._statements, database=self._database)
        except Exception as error:
            self._error = error

    def finish(self) -> None:
        """Wait until the statements are through; raises the error that the server gave."""
        until(f"{self._statements} are through", lambda: not self.is_alive())
        if self._error is not None:
            raise self._error


class HeldCommit(Background):
    """A transaction whose COMMIT waits for `seconds`: it stands in the log and is not visible while `held`."""

    def __init__(
        self, server: PrivateServer, statements: Sequence[str], database: str | None, seconds: float
    ) -> None:
        super().__init__(server, statements, database)
        self._seconds = seconds
        self._until = 0.0

    def start(self) -> None:
        """Run the statements."""
        self._until = time.monotonic() + self._seconds
        super().start()

    @property
    def held(self) -> bool:
        """False once COMMIT may have an effect: after `release` or the timeout."""
        return self.is_alive() and time.monotonic() < self._until

    def release(self) -> None:
        """Let this commit, and all others of the server, become visible; returns when it is.

        Where it is held by the delay it waits for that.
        """
        release(self._server)
        self.finish()


def held_commit(
    server: PrivateServer, *statements: str, database: str | None = None, timeout_ms: int = HOLD_MS
) -> HeldCommit:
    """Run statements that change rows in one transaction; returns when it stands in the log and waits.

    Raises AssertionError when the commit is not held.
    """
    seconds = hold_commits(server, timeout_ms)
    return _start_all(server, [statements], database, seconds)[0]


def held_group(
    server: PrivateServer, statements: Sequence[str], database: str | None = None, timeout_ms: int = HOLD_MS
) -> list[HeldCommit]:
    """One transaction per statement, written to the log together (one group commit) and held together.

    For MariaDB: MySQL has no such settings.
    """
    server.sql(
        f"SET GLOBAL binlog_commit_wait_count = {len(statements)}",
        f"SET GLOBAL binlog_commit_wait_usec = {HOLD_MS * 1000}",
    )
    try:
        seconds = hold_commits(server, timeout_ms)
        return _start_all(server, [(statement,) for statement in statements], database, seconds)
    finally:
        server.sql("SET GLOBAL binlog_commit_wait_count = 0", "SET GLOBAL binlog_commit_wait_usec = 100000")


def mysql_options(build: Build) -> dict[str, str | int]:
    """Settings for a `PrivateMySQL` whose commits are to be held: statements in the log, semi-sync or the delay."""
    how = {"plugin_load_add": "semisync_source.so"} if build.plugins else {"sync_binlog": 0}
    return {**how, "binlog_rows_query_log_events": "ON"}


def ends_on_release(server: PrivateServer) -> bool:
    """Whether `release` ends a hold; where not, a hold lasts for the time given to `hold_commits`."""
    return not (isinstance(server, PrivateMySQL) and server.build.plugins is None)


def _names(server: PrivateServer) -> tuple[str, str]:
    """Prefix of the variables, and what they call a replica."""
    if isinstance(server, PrivateMySQL):
        return "rpl_semi_sync_source", "replica"
    return "rpl_semi_sync_master", "slave"


def hold_commits(server: PrivateServer, timeout_ms: int = HOLD_MS) -> float:
    """Hold all commits from now on, whoever makes them, until `release` or for `timeout_ms`; for how many seconds.

    Beside free writers use this and `release`: a `held_commit` may then queue behind theirs, outside the log.
    """
    if not ends_on_release(server):
        micros = min(timeout_ms * 1000, _LONGEST_DELAY)
        server.sql(f"SET GLOBAL {_DELAY} = {micros}")
        return micros / 1e6
    semisync, replica = _names(server)
    ((_, status),) = server.sql(f"SHOW STATUS LIKE '{semisync}_status'")
    settings = [
        f"{semisync}_timeout = {timeout_ms}",
        f"{semisync}_wait_point = AFTER_SYNC",
        f"{semisync}_wait_no_{replica} = ON",
    ]
    if status != "ON":
        settings += [f"{semisync}_enabled = OFF", f"{semisync}_enabled = ON"]
    server.sql(*(f"SET GLOBAL {setting}" for setting in settings))
    return timeout_ms / 1000


def release(server: PrivateServer) -> None:
    """Hold no commits any more; those held become visible within milliseconds, or when the delay is over."""
    if ends_on_release(server):
        server.sql(f"SET GLOBAL {_names(server)[0]}_enabled = OFF")
    else:
        server.sql(f"SET GLOBAL {_DELAY} = 0")


def commits_wait(server: PrivateServer) -> bool:
    """True while a commit is being held."""
    if not ends_on_release(server):
        ((owned,),) = server.sql(
            "SELECT @@GLOBAL.gtid_owned"
        )  # from the write to the log until it is visible
        return bool(owned)
    ((_, sessions),) = server.sql(f"SHOW STATUS LIKE '{_names(server)[0]}_wait_sessions'")
    return int(sessions) > 0


def flush_logs_in_hold(server: PrivateServer) -> Background:
    """Start FLUSH BINARY LOGS; returns when snapshots name the new file. `finish` waits for the rest. For MariaDB.

    The server creates the file first, then lists it, and only then writes to it: a snapshot in between names the
    old one.
    """
    before, _ = snapshot(server)
    flush = Background(server, ["FLUSH BINARY LOGS"])
    flush.start()
    until("snapshots name the new file", lambda: snapshot(server)[0] != before, every=0.002)
    return flush


def snapshot(server: PrivateServer) -> tuple[str, int]:
    """Where a consistent snapshot says that it is in the log: file and offset. For MariaDB."""
    connection = server.connect()
    with connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
        status = dict(cursor.fetchall())
    return str(status["Binlog_snapshot_file"]), int(status["Binlog_snapshot_position"])


def _start_all(
    server: PrivateServer, transactions: Sequence[Sequence[str]], database: str | None, seconds: float
) -> list[HeldCommit]:
    """Start the transactions and wait until the log's files hold all of their (annotated) statements."""
    before = _log_sizes(server)
    commits, marks = [], []
    for statements in transactions:
        mark = f"/* {secrets.token_hex(8)} */"
        marked = [f"{statement} {mark}" for statement in statements]
        commits.append(HeldCommit(server, ["BEGIN", *marked, "COMMIT"], database, seconds))
        marks.append(mark.encode())
    for commit in commits:
        commit.start()

    def all_in_the_log() -> bool:
        found = all(mark in _log_since(server, before) for mark in marks)
        assert found or all(commit.held for commit in commits), "a commit was not held, or changed no rows"
        return found

    until("the commits reach the log", all_in_the_log, every=0.002)
    assert all(commit.held for commit in commits), "a commit was not held"
    return commits


def _log_sizes(server: PrivateServer) -> dict[Path, int]:
    return {path: path.stat().st_size for path in sorted(server.datadir.glob("binlog.[0-9]*[0-9]"))}


def _log_since(server: PrivateServer, before: dict[Path, int]) -> bytes:
    """Bytes added to the log's files: reading the files takes none of the server's locks."""
    return b"".join(path.read_bytes()[before.get(path, 0) :] for path in _log_sizes(server))
