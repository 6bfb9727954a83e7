"""What is the matter with one shard, and only a person can mend, while a run goes on: the other shard is followed, and
the run follows both again once it is mended."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from catchment.feed.dump import skip
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import ends, goes_on_without, written
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.servers.chosen import chosen_server

USER = "catchment@'%'"
Statements = Callable[[PrivateServer], None]


@dataclass(frozen=True)
class Trouble:
    """How it begins and how it is mended; the `error` by which status and events name it."""

    begins: Statements
    mended: Statements
    error: str


def _locked(server: PrivateServer) -> None:
    server.sql(f"ALTER USER {USER} ACCOUNT LOCK")
    _end_sessions(server)


def _unlocked(server: PrivateServer) -> None:
    server.sql(f"ALTER USER {USER} ACCOUNT UNLOCK")


def _revoked(server: PrivateServer) -> None:
    server.sql(f"REVOKE REPLICATION SLAVE ON *.* FROM {USER}")
    _end_sessions(server)


def _granted(server: PrivateServer) -> None:
    server.sql(f"GRANT REPLICATION SLAVE ON *.* TO {USER}")


def _replaced(server: PrivateServer) -> None:
    server.restart({"server_id": 399})


def _put_back(server: PrivateServer) -> None:
    server.restart({"server_id": 161})


def _hidden_text(server: PrivateServer) -> None:
    """Without SHOW VIEW and TRIGGER nobody sees what it leads to."""
    with closing(server.connect()) as session, session.cursor() as cursor:
        cursor.execute("SET binlog_format = STATEMENT")
        cursor.execute("UPDATE elsewhere.x SET n = n + 1")


def _shown_text(server: PrivateServer) -> None:
    server.sql(f"GRANT SHOW VIEW, TRIGGER ON *.* TO {USER}")


TROUBLES = (
    Trouble(_locked, _unlocked, "LoginRefused"),
    Trouble(_revoked, _granted, "SourceError"),
    Trouble(_replaced, _put_back, "OtherServer"),
    Trouble(_hidden_text, _shown_text, "Unsupported"),
)


@pytest.fixture
def shards() -> Iterator[dict[str, PrivateServer]]:
    """Two shards, of which one is harmed."""
    with chosen_server(server_id=161) as harmed, chosen_server(server_id=162) as other:
        harmed.sql("CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.x (n INT)")
        yield {"-80": harmed, "80-": other}


@pytest.mark.promise(
    "a shard that a person has to mend holds up itself alone, and the run goes on with it by itself"
)
def test_the_other_shard_goes_on(shards: dict[str, PrivateServer], live: MakeLife) -> None:
    """What is written to the shard meanwhile waits, and is not lost."""
    life = live(shards)
    life.load(40)
    run = life.told()
    run.wait_for("caught_up")
    with written(life, shard="80-"):
        for number, trouble in enumerate(TROUBLES):
            trouble.begins(shards["-80"])
            life.touch(number, shard="-80")
            run.wait_for("shard", shard="-80", error=trouble.error)
            goes_on_without(run, "-80", shards)
            trouble.mended(shards["-80"])
            run.wait("an epoch with it", lambda one: one["event"] == "epoch" and not one["absent"])
    run.wait_for_log(ends(shards))
    run.process.terminate()
    run.ended()
    _revoked(shards["-80"])
    run = life.told()
    with written(life, shard="80-"):
        run.wait_for("shard", shard="-80", error="SourceError")
        life.touch(len(TROUBLES), shard="-80")
        goes_on_without(run, "-80", shards)
        _granted(shards["-80"])
        run.wait("an epoch with it", lambda one: one["event"] == "epoch" and not one["absent"])
    run.wait_for_log(ends(shards))
    run.process.terminate()
    run.ended()
    life.must_be_exact()


def test_text_that_an_order_sets_aside(shards: dict[str, PrivateServer], live: MakeLife) -> None:
    """The tables that it may have changed are copied again, in the same run."""
    life = live(shards)
    life.load(40)
    run = life.told()
    run.wait_for("caught_up")
    _hidden_text(shards["-80"])
    with written(life):
        stands = run.wait_for("shard", shard="-80", error="Unsupported")
        goes_on_without(run, "-80", shards)
        (place,) = re.findall(r"--at (\S+:\d+)", stands["message"])
        assert skip(life.file, "-80", place, wait=PATIENCE_SECONDS).answer is not None
        run.wait_for("table", state="stale")
        until("all is copied again", lambda: {*run.states().values()} == {"following"}, seen=run.states)
    run.wait_for_log(ends(shards))
    run.process.terminate()
    run.ended()
    life.must_be_exact()


def _end_sessions(server: PrivateServer) -> None:
    for (number,) in server.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'catchment'"):
        with suppress(pymysql.err.MySQLError):  # it has ended by itself
            server.sql(f"KILL {number}")
