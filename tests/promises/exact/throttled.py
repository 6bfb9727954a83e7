"""A feed whose copy is throttled, and what tests ask of it."""

import http.server
import threading
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from catchment.demo.server import PrivateServer
from catchment.state.store import Store
from catchment.watch.status import Status, read_status
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.test_orders import beat, newest, wait

ROWS = 2000


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
    copy = {"chunk_rows_max": 40, "group_time": "0s", "groups_per_shard": 1, "throttle": throttle}
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
    """No row is copied, and the log goes on: epochs that are planned later bring none. Lag is told as ever."""
    beat(steps)  # what was planned before is in the lake
    rows = copied(steps)
    steps.everywhere("UPDATE t SET n = n + 1000000 WHERE id IN (1, 1999)")
    for _ in range(2):
        beat(steps)
        assert copied(steps) == rows
    lags = [0.0]

    def falls() -> bool:
        lags.append(samples(steps.file.parent / "feed.prom")["catchment_lag_seconds"])
        return lags[-1] < max(lags)

    wait(falls)


def must_copy_the_rest(steps: Steps) -> None:
    wait(lambda: newest(steps).cut.copied)
    wait(lambda: not throttled(steps))
    metrics = steps.file.parent / "feed.prom"
    wait(lambda: samples(metrics)["catchment_copy_throttled -80"] == 0)


def copy_other_first(steps: Steps) -> None:
    """So that the tests may see changes of a table whose rows are all copied."""
    described = yaml.safe_load(steps.file.read_text())["copy"]
    steps.set(copy={**described, "first": [f"{steps.schema}.other"]})


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

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Answering)
        self.status = 200
        self.paths: list[str] = []
        self.hangs, self.ended = threading.Event(), threading.Event()
