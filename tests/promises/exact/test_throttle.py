"""A copy that waits for the source's sake is quiet; the log goes on, lag is told, and at the end all is equal."""

import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import yaml

import catchment
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.state.store import Store
from catchment.watch.status import Status, read_status
from tests.conftest import Shards
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_orders import newest, running, table, wait
from tests.world.servers.chosen import chosen_server

ROWS = 2000
QUIET_SECONDS = 2.5


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, whose copy takes many epochs."""
    return begun(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards), monkeypatch)


def begun(
    directory: Path, servers: dict[str, PrivateServer], schema: str, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    made = Steps(directory, servers, schema)
    values = ", ".join(f"({key}, {key})" for key in range(1, ROWS + 1))
    made.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO t VALUES {values}",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        "INSERT INTO other VALUES (1)",
    )
    throttled_by(made)
    return made


def throttled_by(steps: Steps, **throttle: object) -> None:
    """Small chunks, and these checks."""
    copy = {"chunk_rows_max": 40, "groups_per_shard": 1, "throttle": throttle}
    steps.set(copy=copy, metrics={"file": str(steps.file.parent / "feed.prom")})


def status(steps: Steps) -> Status:
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        return read_status(store)


def throttled(steps: Steps) -> list[str]:
    return [one.text for one in status(steps).throttled]


def copied(steps: Steps) -> int:
    return sum(one.rows for one in newest(steps).cut.copies)


def says(steps: Steps, words: str) -> bool:
    """Whether both shards are throttled by what says that."""
    texts = throttled(steps)
    return len(texts) == 2 and all(words in text for text in texts)


def must_be_quiet(steps: Steps) -> None:
    """No row is copied, and the log goes on."""
    rows, others = copied(steps), len(steps.lake("other", "id"))
    steps.everywhere("UPDATE t SET n = n + 1000000 WHERE id IN (1, 1999)", "INSERT INTO other VALUES (NULL)")
    wait(lambda: len(steps.lake("other", "id")) == others + 2 or copied(steps) != rows)
    time.sleep(QUIET_SECONDS)
    assert copied(steps) == rows
    lag = status(steps).lag_seconds
    assert lag is not None
    metrics = samples(steps.file.parent / "feed.prom")
    assert metrics["catchment_lag_seconds"] < QUIET_SECONDS + 10


def must_copy_the_rest(steps: Steps) -> None:
    wait(lambda: newest(steps).cut.copied)
    wait(lambda: not throttled(steps))
    metrics = steps.file.parent / "feed.prom"
    wait(lambda: samples(metrics)["catchment_copy_throttled -80"] == 0)


def copy_other_first(steps: Steps) -> None:
    """So that the tests may see changes of a table whose rows are all copied."""
    described = yaml.safe_load(steps.file.read_text())["copy"]
    steps.set(copy={**described, "first": [f"{steps.schema}.other"]})


def test_a_flag_file_and_all_that_tells_of_it(
    steps: Steps, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    flag = steps.file.parent / "wait"
    throttled_by(steps, flag_file="wait")
    copy_other_first(steps)
    with running(steps):
        wait(lambda: table(steps).rows > 0)
        flag.touch()
        wait(lambda: len(throttled(steps)) == 2)
        must_be_quiet(steps)
        (first, second) = status(steps).throttled
        assert (first.shard, second.shard) == ("-80", "80-")
        assert (first.check, first.value, first.limit) == ("flag_file", None, None)
        assert first.text == f"shard -80: no rows are copied since {first.since}: flag_file {flag} exists"
        assert table(steps).throttled == (first.text, second.text)
        assert table(steps, "other").throttled == ()
        assert execute(["status", str(steps.file)]) == 0
        assert first.text in capsys.readouterr().out
        assert execute(["tables", str(steps.file)]) == 0
        assert capsys.readouterr().out.count(first.text) == 1
        wait(lambda: samples(steps.file.parent / "feed.prom")["catchment_copy_throttled 80-"] > QUIET_SECONDS)
        assert first.text in caplog.messages
        flag.unlink()
        must_copy_the_rest(steps)
    assert any("rows are copied again after" in message for message in caplog.messages)
    assert not [message for message in caplog.messages if "stands still" in message]
    assert throttled(steps) == []
    steps.must_be_equal("t", "id", "n")
    steps.must_be_equal("other", "id")


def test_what_was_throttled_is_gone_on_with_by_a_later_run(steps: Steps) -> None:
    flag = steps.file.parent / "wait"
    flag.touch()
    throttled_by(steps, flag_file=str(flag))
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        time.sleep(QUIET_SECONDS)
        assert copied(steps) == 0
    assert throttled(steps) == [], "nobody runs it"
    flag.unlink()
    steps.must_be_equal("t", "id", "n")


def test_a_run_is_stopped_while_it_is_throttled(steps: Steps) -> None:
    (steps.file.parent / "wait").touch()
    throttled_by(steps, flag_file="wait")
    steps.set(epoch={"interval": "300s", "tick": "50ms"})
    with running(steps) as run:
        wait(lambda: len(throttled(steps)) == 2)
        assert catchment.stop(steps.file).answer is not None
        run.join(60)
        assert run.outcome is not None


def test_a_long_interval_holds_up_no_copy_that_may_go_on(steps: Steps) -> None:
    flag = steps.file.parent / "wait"
    flag.touch()
    throttled_by(steps, flag_file="wait")
    steps.set(epoch={"interval": "1h", "tick": "50ms"})
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        flag.unlink()
        must_copy_the_rest(steps)
    steps.set(epoch={"interval": "50ms", "tick": "50ms"})
    steps.must_be_equal("t", "id", "n")


def test_a_paused_table_does_not_stay_throttled(steps: Steps) -> None:
    (steps.file.parent / "wait").touch()
    throttled_by(steps, flag_file="wait")
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        catchment.dump(steps.file, "pause")
        wait(lambda: not throttled(steps))
        (steps.file.parent / "wait").unlink()
        catchment.dump(steps.file, "start")
        must_copy_the_rest(steps)
    steps.must_be_equal("t", "id", "n")


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
        wait(lambda: len(throttled(steps)) == 2 and "query is 7, and is to be" in throttled(steps)[0])
        for statement, words in said.items():
            steps.everywhere(statement)
            wait(partial(says, steps, words))
        assert copied(steps) == 0
        steps.everywhere("UPDATE bears SET n = '4.5'")
        must_copy_the_rest(steps)
    steps.must_be_equal("t", "id", "n")


def test_a_query_that_takes_too_long_or_writes(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE bears (n INT)")
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.other"])
    throttled_by(steps, query={"select": "SELECT SLEEP(3600)", "at_most": 5})
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        steps.everywhere("INSERT INTO other VALUES (NULL)")
        wait(lambda: len(throttled(steps)) == 2 and "no answer" not in throttled(steps)[0])
        wait(lambda: steps.servers["-80"].sql(BUSY) == [])
        assert copied(steps) == 0
    throttled_by(steps)
    steps.must_be_equal("t", "id", "n")


ASLEEP = "SELECT id FROM information_schema.processlist WHERE info = 'SELECT SLEEP(3601)'"
BUSY = "SELECT id FROM information_schema.processlist WHERE info LIKE '%SLEEP(3600)' AND time > 6"


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers with the status that the server has."""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Health)
        if server.hangs.is_set():
            server.ended.wait()
        self.send_response(server.status)
        if server.status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()
        server.paths.append(self.path)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Health(http.server.ThreadingHTTPServer):
    """What an HTTP check asks."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.status = 200
        self.paths: list[str] = []
        self.hangs, self.ended = threading.Event(), threading.Event()


@pytest.fixture
def health() -> Iterator[Health]:
    with Health() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.ended.set()
        server.shutdown()


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


def test_an_http_check_that_nobody_answers(steps: Steps, health: Health) -> None:
    health.shutdown()
    health.server_close()
    throttled_by(steps, http=f"http://127.0.0.1:{health.server_address[1]}/")
    with running(steps):
        wait(lambda: len(throttled(steps)) == 2)
        assert "http cannot be asked: Connection refused" in throttled(steps)[0]
        assert copied(steps) == 0


def test_rates(steps: Steps) -> None:
    """Two shards of 2,000 rows, 500 a second: the first thousand may come at once."""
    throttled_by(steps, rows_per_second=500)
    began = time.monotonic()
    with running(steps):
        wait(lambda: newest(steps).cut.copied)
        assert time.monotonic() - began > (ROWS - 1000) / 500
        assert throttled(steps) == []
    steps.must_be_equal("t", "id", "n")


def test_a_rate_of_bytes_far_below_one_chunk(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE long_ones (id INT PRIMARY KEY, b LONGTEXT)")
    values = ", ".join(f"({key}, REPEAT('x', 20000))" for key in range(20))
    steps.everywhere(f"INSERT INTO long_ones VALUES {values}")
    throttled_by(steps, bytes_per_second="64KB")
    began = time.monotonic()
    with running(steps):
        wait(lambda: newest(steps).cut.copied)
    assert time.monotonic() - began > (400_000 - 4 * (64 << 10)) / (64 << 10)
    steps.must_be_equal("long_ones", "id", "b")


def test_a_feed_at_rest_asks_nothing(steps: Steps, health: Health) -> None:
    throttled_by(steps, http=f"http://127.0.0.1:{health.server_address[1]}/")
    with running(steps):
        wait(lambda: newest(steps).cut.copied)
        assert health.paths
        wait(lambda: not [one for one in threading.enumerate() if one.name.startswith("throttle ")])
        asked = len(health.paths)
        steps.everywhere("INSERT INTO other VALUES (NULL)")
        wait(lambda: len(steps.lake("other", "id")) == 4)
        time.sleep(QUIET_SECONDS)
        assert len(health.paths) == asked


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
