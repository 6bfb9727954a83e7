"""What befalls the shop's feed, one after another: each returns when what it did is over."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from types import MappingProxyType

from catchment.cli.output import EXIT_INTERRUPTED
from catchment.demo.install import find_program
from tests.promises.soak import shop
from tests.promises.soak.soak import SCHEMA, USER, Soak, end_sessions
from tests.world.patience import until

Trouble = Callable[[Soak], None]


def _any(soak: Soak) -> str:
    return soak.chance.choice(list(soak.servers))


def run_killed(soak: Soak) -> None:
    """kill -9 of the run."""
    soak.run.kill()
    soak.again()


def run_stopped(soak: Soak) -> None:
    """SIGTERM, as of a deployment."""
    soak.run.process.terminate()
    ended = soak.run.ended()
    assert ended.code == EXIT_INTERRUPTED, ended
    soak.again()


def run_frozen(soak: Soak) -> None:
    """A machine that was suspended."""
    os.killpg(soak.run.pid, signal.SIGSTOP)
    at = soak.writers.transactions
    until("the shop is ahead", lambda: soak.writers.transactions > at + 20)
    os.killpg(soak.run.pid, signal.SIGCONT)


def shard_crashes(soak: Soak) -> None:
    """kill -9 of a server, until the run has missed it."""
    shard = _any(soak)
    soak.servers[shard].kill9()
    soak.run.wait_for("shard", shard=shard, state="away")
    soak.servers[shard].start()


def shard_restarts(soak: Soak) -> None:
    """A server is shut down in order and comes back at once."""
    server = soak.servers[_any(soak)]
    server.stop()
    server.start()


def sessions_killed(soak: Soak) -> None:
    """Someone ends all sessions of the feed's user."""
    for server in soak.servers.values():
        end_sessions(server, USER)


def store_restarts(soak: Soak) -> None:
    """PostgreSQL, which has the state store, is gone until the run has missed it."""
    soak.store.stop()
    soak.run.wait_for("away", what="the state store", state="away")
    soak.store.start()


def lake_away(soak: Soak) -> None:
    """The object store is gone until the run has missed it."""
    soak.s3.kill9()
    soak.run.wait_for("away", what="the lake", state="away")
    soak.s3.start()


def password_rotated(soak: Soak) -> None:
    """The server has the new password first, the file of it when the run has been refused."""
    shard = _any(soak)
    password = soak.let_in(shard)
    end_sessions(soak.servers[shard], USER)
    soak.run.wait_for("shard", shard=shard, state="away", error="LoginRefused")
    soak.password_file(shard).write_text(password)
    soak.run.wait_for("shard", shard=shard, state="back")


def log_purged(soak: Soak) -> None:
    """Old files of the log go, of which the feed has read everything."""
    shard = _any(soak)
    server = soak.servers[shard]
    server.sql("FLUSH BINARY LOGS")
    soak.goes_on()
    _purge(soak, shard)


def log_lost(soak: Soak) -> None:
    """The run was away for longer than the log was kept; an order copies its tables again."""
    shard = _any(soak)
    soak.run.kill()
    at = soak.writers.transactions
    until("the shop is ahead", lambda: soak.writers.transactions > at + 20)
    soak.servers[shard].sql("FLUSH BINARY LOGS")
    _purge(soak, shard)
    soak.again()

    def waits() -> bool:
        soak.must_run()
        manifest = soak.newest()
        return manifest is not None and any(one.waits for one in manifest.stale)

    until("tables of the lost log wait", waits)
    assert soak.command("dump", "start") == 0


def columns_change(soak: Soak) -> None:
    """A column comes on one shard after the other, or goes."""
    table = soak.chance.choice(list(shop.KEYS))
    added = soak.added[table]
    if added and soak.chance.random() < 0.5:
        change = f"DROP COLUMN {added.pop()}"
    else:
        added.append(f"x{sum(map(len, soak.added.values()))}_{len(soak.said)}")
        change = f"ADD COLUMN {added[-1]} INT {soak.chance.choice(('NULL', 'NOT NULL DEFAULT 7'))}"
    for shard in soak.chance.sample(list(soak.servers), 2):
        soak.servers[shard].sql(
            "SET lock_wait_timeout = 60", f"ALTER TABLE {table} {change}", database=SCHEMA
        )
        if soak.chance.random() < 0.5:
            soak.goes_on()


def table_emptied(soak: Soak) -> None:
    """TRUNCATE on one shard."""
    soak.servers[_any(soak)].sql("TRUNCATE TABLE articles", database=SCHEMA)


def table_swapped(soak: Soak) -> None:
    """A table is built beside the old one and takes its name, while nobody writes."""
    with soak.writers.paused():
        for server in soak.servers.values():
            server.sql(
                "DROP TABLE IF EXISTS _articles_new",
                "CREATE TABLE _articles_new LIKE articles",
                "INSERT INTO _articles_new SELECT * FROM articles",
                "RENAME TABLE articles TO _articles_old, _articles_new TO articles",
                "DROP TABLE _articles_old",
                database=SCHEMA,
            )


def server_replaced(soak: Soak) -> None:
    """A server with the same rows and a log of its own takes over; `adopt --copy` copies the shard's tables again."""
    shard = _any(soak)
    old, new = soak.servers[shard], soak.server()
    with soak.writers.paused():
        soak.run.process.terminate()
        soak.run.ended()
        file = soak.file.with_name("dump.sql")
        old.dump(file, [SCHEMA])
        with file.open() as dumped:
            subprocess.run(
                [find_program("mariadb", "mariadb-client"), f"--defaults-file={new.defaults_file}"],
                stdin=dumped,
                check=True,
            )
        soak.servers[shard] = new
        soak.password_file(shard).write_text("")
        soak.let_in(shard)
        soak.judges[shard].comes(new)
        old.sql("SET GLOBAL read_only = ON")
        end_sessions(old, "root")
        soak.describe()
        assert soak.command("adopt", "--shard", shard, "--copy") == 0, soak.said[-1]
    soak.again()


def verified(soak: Soak) -> None:
    """No trouble: someone compares all rows, which finds no difference. Stale tables may not be compared."""
    assert soak.command("verify") in (0, 11), soak.said[-1]


def _purge(soak: Soak, shard: str) -> None:
    server = soak.servers[shard]
    soak.judges[shard].remember()
    file, _ = server.log_end()

    def purged() -> bool:
        """A server keeps files that a dump still reads, also of a client that was killed."""
        server.sql(f"PURGE BINARY LOGS TO '{file}'")
        return bool(server.sql("SHOW BINARY LOGS")[0][0] == file)

    until(f"the log begins at {file}", purged)


TROUBLES: Mapping[str, Trouble] = MappingProxyType(
    {
        trouble.__name__: trouble
        for trouble in (
            run_killed,
            run_stopped,
            run_frozen,
            shard_crashes,
            shard_restarts,
            sessions_killed,
            store_restarts,
            lake_away,
            password_rotated,
            log_purged,
            log_lost,
            columns_change,
            table_emptied,
            table_swapped,
            server_replaced,
            verified,
        )
    }
)
