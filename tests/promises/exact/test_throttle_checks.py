"""Each check against real servers: what does not let rows pass, and that they pass again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import yaml

from catchment.demo.server import PrivateServer
from tests.conftest import Shards
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_orders import newest, running, table, wait
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
from tests.world.servers.chosen import chosen_server


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, whose copy takes many epochs."""
    return begun(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards), monkeypatch)


@pytest.fixture
def health() -> Iterator[Health]:
    with Health() as server:
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


def test_threads_running(steps: Steps) -> None:
    throttled_by(steps, threads_running=12)
    copy_other_first(steps)
    with asleep(steps.servers["-80"], 12), running(steps):
        wait(lambda: len(throttled(steps)) == 1)
        wait(lambda: rows_on(steps, "80-") == ROWS)
        must_be_quiet(steps)
        (one,) = status(steps).throttled
        assert (one.shard, one.check, one.limit) == ("-80", "threads_running", 12)
        assert one.value is not None
        assert one.value > 12
        metrics = samples(steps.file.parent / "feed.prom")
        assert metrics["catchment_copy_throttled_value threads_running -80"] > 12
        assert metrics["catchment_copy_throttled_limit threads_running -80"] == 12
        assert metrics["catchment_copy_throttled 80-"] == 0
        assert rows_on(steps, "-80") == 0
    steps.must_be_equal("t", "id", "n")


def rows_on(steps: Steps, shard: str) -> int:
    copies = newest(steps).cut.shards[shard].copies
    return next(copy.rows for copy in copies if copy.table.name == "t")


@pytest.mark.wide
@pytest.mark.mariadb("MySQL tells it to users with PROCESS")
def test_history_list_length(steps: Steps) -> None:
    throttled_by(steps, history_list_length=100)
    server = steps.servers["-80"]
    with closing(server.connect()) as view, view.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        cursor.execute(f"SELECT COUNT(*) FROM {steps.schema}.t")
        for _ in range(150):
            steps.sql("-80", "UPDATE other SET id = -id")
        with running(steps):
            wait(lambda: len(throttled(steps)) == 1)
            (one,) = status(steps).throttled
            assert (one.check, one.limit) == ("history_list_length", 100)
            assert rows_on(steps, "-80") == 0
            view.rollback()
            must_copy_the_rest(steps)
    steps.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_a_query(steps: Steps) -> None:
    """It may say NULL, or fail; then nothing passes."""
    steps.everywhere("CREATE TABLE bears (n INT)", "INSERT INTO bears VALUES (7)")
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.other"])
    select = f"SELECT MAX(n) FROM {steps.schema}.bears"
    throttled_by(steps, query={"select": select, "at_most": 5})
    said = {
        "UPDATE bears SET n = NULL": "query is not known (NULL), and is to be at most 5",
        "DROP TABLE bears": "doesn't exist",
        "CREATE TABLE bears (n VARCHAR(9))": "query is not known (NULL), and is to be at most 5",
        "INSERT INTO bears VALUES ('much')": "query cannot be asked: the answer is no number",
    }
    with running(steps):
        wait(partial(says, steps, "query is 7, and is to be"))
        for statement, words in said.items():
            steps.everywhere(statement)
            wait(partial(says, steps, words))
        assert copied(steps) == 0
        steps.everywhere("UPDATE bears SET n = '4.5'")
        must_copy_the_rest(steps)
    steps.must_be_equal("t", "id", "n")


@pytest.mark.wide
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


@pytest.mark.wide
def test_an_http_check(steps: Steps, health: Health, caplog: pytest.LogCaptureFixture) -> None:
    url = f"http://127.0.0.1:{health.server_address[1]}/health?token=hunter2"
    throttled_by(steps, http=url)
    copy_other_first(steps)
    with running(steps):
        wait(lambda: table(steps).rows > 0)
        for status_, words in ((503, "http answers 503"), (302, "http answers 302")):
            health.status = status_
            wait(partial(says, steps, words))
        must_be_quiet(steps)
        health.hangs.set()
        wait(lambda: "answers 302" not in "".join(throttled(steps)))
        assert len(throttled(steps)) == 2
        must_be_quiet(steps)
        health.hangs.clear()
        health.ended.set()
        health.status = 200
        must_copy_the_rest(steps)
        asked = len(health.paths)
    assert asked > 0
    assert set(health.paths) == {"/health?token=hunter2"}
    assert not [message for message in caplog.messages if "hunter2" in message]
    steps.must_be_equal("t", "id", "n")


@pytest.mark.wide
def test_an_http_check_that_nobody_answers(steps: Steps, health: Health) -> None:
    health.shutdown()
    health.server_close()
    throttled_by(steps, http=f"http://127.0.0.1:{health.server_address[1]}/")
    with running(steps):
        wait(partial(says, steps, "http cannot be asked: Connection refused"))
        assert copied(steps) == 0


@pytest.mark.wide
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
