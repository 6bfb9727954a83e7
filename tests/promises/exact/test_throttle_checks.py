"""Each check against real servers: what does not let rows pass, and that they pass again."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import yaml

from catchment.demo.server import PrivateServer
from catchment.feed import throttle
from tests.conftest import Shards
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_orders import beat, newest, running, wait
from tests.promises.exact.throttled import (
    ROWS,
    Health,
    begun,
    copied,
    copy_other_first,
    must_be_quiet,
    must_copy_the_rest,
    says,
    status,
    throttled,
    throttled_by,
)
from tests.world.servers.chosen import chosen_server, on_mysql


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, whose copy takes many epochs."""
    return begun(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards), monkeypatch)


@contextmanager
def served(port: int) -> Iterator[Health]:
    """What an HTTP check asks at a port."""
    with Health(port) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.ended.set()
        server.shutdown()


@contextmanager
def asleep(server: PrivateServer, sessions: int) -> Iterator[None]:
    """Sessions that are busy until the block ends."""

    def sleep() -> None:
        with suppress(Exception):  # it is killed
            server.sql("SELECT SLEEP(3601)")

    threads = [threading.Thread(target=sleep, daemon=True) for _ in range(sessions)]
    for thread in threads:
        thread.start()
    wait(lambda: len(server.sql(ASLEEP)) == sessions)
    try:
        yield
    finally:
        for (number,) in server.sql(ASLEEP):
            server.sql(f"KILL {number}")
        for thread in threads:
            thread.join()


def rows_on(steps: Steps, shard: str) -> int:
    copies = newest(steps).cut.shards[shard].copies
    return next(copy.rows for copy in copies if copy.table.name == "t")


# What a query says that lets no row pass.
SAID = {
    "UPDATE bears SET n = NULL": "query is not known (NULL), and is to be at most 5",
    "DROP TABLE bears": "doesn't exist",
    "CREATE TABLE bears (n VARCHAR(9))": "query is not known (NULL), and is to be at most 5",
    "INSERT INTO bears VALUES ('much')": "query cannot be asked: the answer is no number",
}


def test_each_check(steps: Steps, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """One check after the other keeps rows from passing, before the one in front of it lets them: so none is copied
    until the last one lets them."""
    monkeypatch.setattr(throttle, "_UNWANTED_SECONDS", 3.0)
    steps.everywhere("CREATE TABLE bears (n INT)", "INSERT INTO bears VALUES (7)")
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.other"])
    query = {"select": f"SELECT MAX(n) FROM {steps.schema}.bears", "at_most": 5}
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen: who connects is refused
        port = nobody.getsockname()[1]
        checks = {
            "http": f"http://127.0.0.1:{port}/health?token=hunter2",
            "threads_running": 12,
            "query": query,
        }
        throttled_by(steps, **checks, **({} if on_mysql() else {"history_list_length": 100}))
        with ExitStack() as stack:
            stack.enter_context(running(steps))
            wait(partial(says, steps, "http cannot be asked: Connection refused"))
            beat(steps)
            assert copied(steps) == 0
            nobody.close()
            health = stack.enter_context(served(port))
            wait(partial(says, steps, "query is 7, and is to be"))
            for statement, words in SAID.items():
                steps.everywhere(statement)
                wait(partial(says, steps, words))
            for status_, words in ((503, "http answers 503"), (302, "http answers 302")):
                health.status = status_
                wait(partial(says, steps, words))
            steps.everywhere("UPDATE bears SET n = '4.5'")
            must_be_quiet(steps)
            health.hangs.set()
            wait(lambda: "answers 302" not in "".join(throttled(steps)))
            assert len(throttled(steps)) == 2
            beat(steps)
            assert copied(steps) == 0
            must_keep_one_shard(steps, health)
            must_ask_nothing_at_rest(steps, health)
    assert set(health.paths) == {"/health?token=hunter2"}
    assert not [message for message in caplog.messages if "hunter2" in message]
    steps.must_be_equal("t", "id", "n")


def must_keep_one_shard(steps: Steps, health: Health) -> None:
    """A shard whose threads are busy copies nothing, and neither does it while it has a long history; the other one
    copies all."""
    server = steps.servers["-80"]
    with closing(server.connect()) as view, view.cursor() as cursor:
        with asleep(server, 12):
            health.status = 200
            health.hangs.clear()
            health.ended.set()
            wait(lambda: rows_on(steps, "80-") == ROWS)
            wait(lambda: [one.shard for one in status(steps).throttled] == ["-80"])
            (one,) = status(steps).throttled
            assert (one.check, one.limit) == ("threads_running", 12)
            assert one.value is not None
            assert one.value > 12
            metrics = samples(steps.file.parent / "feed.prom")
            assert metrics["catchment_copy_throttled_value threads_running -80"] > 12
            assert metrics["catchment_copy_throttled_limit threads_running -80"] == 12
            assert metrics["catchment_copy_throttled 80-"] == 0
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            cursor.execute(f"SELECT COUNT(*) FROM {steps.schema}.t")
            for _ in range(150):
                steps.sql("-80", "UPDATE other SET id = -id")
            assert rows_on(steps, "-80") == 0
        if not on_mysql():  # which tells it to users with PROCESS
            wait(lambda: [one.check for one in status(steps).throttled] == ["history_list_length"])
            assert rows_on(steps, "-80") == 0
        view.rollback()
        must_copy_the_rest(steps)


def must_ask_nothing_at_rest(steps: Steps, health: Health) -> None:
    """Where all rows are copied, no check is made."""
    wait(lambda: not [one for one in threading.enumerate() if one.name.startswith("throttle ")])
    asked = len(health.paths)
    beat(steps)
    assert len(health.paths) == asked


def test_a_query_that_takes_too_long(steps: Steps) -> None:
    """The server ends it, so that it does not go on behind a run that has given it up."""
    throttled_by(
        steps, query={"select": f"SELECT COUNT(*) FROM {steps.schema}.t WHERE SLEEP(3600)", "at_most": 5}
    )
    with running(steps):
        wait(partial(says, steps, "query cannot be asked: server error"))
        wait(lambda: steps.servers["-80"].sql(BUSY) == [])
        assert copied(steps) == 0
    throttled_by(steps)
    steps.must_be_equal("t", "id", "n")


ASLEEP = "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(3601)'"
BUSY = "SELECT id FROM information_schema.processlist WHERE info LIKE '%WHERE SLEEP(3600)' AND time > 6"


@pytest.mark.mariadb("its own statements set the replica up")
def test_replica_lag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        chosen_server(server_id=131, password="s3cret") as source,
        chosen_server(server_id=132, password="s3cret", settings={"skip_slave_start": 1}) as replica,
    ):
        schema = "shop"
        source.sql(f"CREATE DATABASE {schema}", "GRANT REPLICATION SLAVE ON *.* TO catchment")
        steps = begun(tmp_path, {"-80": source}, schema, monkeypatch)
        described = yaml.safe_load(steps.file.read_text())["source"]
        described["shards"][0]["replicas"] = [{"host": replica.host, "port": replica.port}]
        steps.set(source=described)
        throttled_by(steps, replica_lag="2s")
        copy_other_first(steps)
        where = f"{replica.host}:{replica.port}"
        with running(steps):
            wait(lambda: "GRANT REPLICA MONITOR ON *.* there" in "".join(throttled(steps)))
            replica.sql("GRANT REPLICA MONITOR ON *.* TO catchment")
            wait(lambda: f"{where} is no replica" in "".join(throttled(steps)))
            replica.sql(
                f"CHANGE MASTER TO MASTER_HOST='{source.host}', MASTER_PORT={source.port}, "
                f"MASTER_USER='catchment', MASTER_PASSWORD='s3cret', MASTER_LOG_FILE='binlog.000001', "
                "MASTER_LOG_POS=4, MASTER_DELAY=3600",
            )
            wait(lambda: f"replica_lag of {where} is not known (NULL)" in "".join(throttled(steps)))
            replica.sql("START SLAVE")
            wait(lambda: f"replica_lag of {where} is " in "".join(throttled(steps)))
            wait(lambda: [one for one in status(steps).throttled if one.value is not None])
            (one,) = status(steps).throttled
            assert (one.check, one.limit) == ("replica_lag", 2)
            assert copied(steps) == 0
            replica.sql("STOP SLAVE", "CHANGE MASTER TO MASTER_DELAY=0", "START SLAVE")
            must_copy_the_rest(steps)
        steps.must_be_equal("t", "id", "n")
