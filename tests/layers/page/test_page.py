"""The status page of a real run: what it shows, whether it calls it healthy, and that nobody who looks holds it up."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import catchment
from catchment.feed.runner import run_feed
from catchment.page import kept
from catchment.page.health import PATIENCE_SECONDS as HEALTHY_SECONDS
from catchment.page.health import Health
from catchment.state.notes import Trouble
from catchment.watch.report import Observer, Report
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.world.patience import PATIENCE_SECONDS
from tests.world.worlds import SetClocks, put

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def steps(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    port: int,
) -> Steps:
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.set(copy={"chunk_rows_max": 20, "group_time": "0s", "groups_per_shard": 1}, status={"port": port})
    values = ", ".join(f"({key}, {key})" for key in range(1, 3001))
    for name in ("t", SCRIPT):
        begun.everywhere(
            f"CREATE TABLE `{name}` (id INT PRIMARY KEY, n INT)", f"INSERT INTO `{name}` VALUES {values}"
        )
    return begun


def asked(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def shown(port: int) -> dict[str, Any]:
    status, body = asked(port, "/status.json")
    assert status == 200
    found: dict[str, Any] = json.loads(body)
    return found


def wait(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if holds():
                return
        except (OSError, http.client.HTTPException):  # not there yet
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextmanager
def running(steps: Steps, observer: Observer | None = None) -> Iterator[threading.Event]:
    stop = threading.Event()
    run = threading.Thread(
        target=run_feed,
        args=(steps.feed,),
        kwargs={"until_caught_up": False, "stop": stop, "observer": observer or Observer()},
    )
    run.start()
    try:
        yield stop
    finally:
        stop.set()
        run.join()


def test_what_it_shows_of_a_run(steps: Steps, port: int) -> None:
    with running(steps):
        wait(lambda: asked(port, "/healthz") == (200, "ok\n"))
        wait(lambda: (shown(port)["progress"] or {}).get("rate"))
        catchment.dump(steps.file, "pause", f"{steps.schema}.t", wait=PATIENCE_SECONDS)
        wait(lambda: shown(port)["status"]["orders"])
        found = shown(port)
        (order,) = found["status"]["orders"]
        assert (order["order"], order["state"]) == (f"pause {steps.schema}.t", "done")
        assert found["addresses"] == {
            name: f"{server.host}:{server.port}" for name, server in steps.servers.items()
        }
        assert {log["shard"] for log in found["progress"]["logs"]} == {"-80", "80-"}
        assert found["window_us"] >= 0
        names = [table["table"] for table in found["status"]["tables"]]
        assert names == [f"{steps.schema}.{SCRIPT}", f"{steps.schema}.t"]
        catchment.dump(steps.file, "resume", f"{steps.schema}.t", wait=PATIENCE_SECONDS)
        wait(lambda: {t["state"] for t in shown(port)["status"]["tables"]} == {"following"})
        wait(lambda: sum(shown(port)["history"]["rows"]) > 0)
        status, metrics = asked(port, "/metrics")
        assert status == 200
        assert 'catchment_seconds_left{bound="likely",feed="' in metrics
        assert "catchment_log_backlog_bytes{" in metrics
        for path in ("/", "/page.css", "/page.js", "/icon.svg"):
            status, body = asked(port, path)
            assert status == 200
            assert "http://" not in body.replace("http://www.w3.org/2000/svg", "")
            assert "https://" not in body
        assert asked(port, "/orders")[0] == 404
    with pytest.raises(ConnectionRefusedError):
        asked(port, "/")


def test_no_secret_is_served(steps: Steps, port: int) -> None:
    secrets = [server.password for server in steps.servers.values()]
    assert all(secrets)
    steps.set(mask_key="a secret of sixteen characters", notify={"url": "http://127.0.0.1:9/token-of-ours"})
    with running(steps):
        wait(lambda: shown(port)["status"] and shown(port)["status"]["epoch"])
        for path in ("/", "/status.json", "/metrics", "/healthz", "/page.js"):
            body = asked(port, path)[1]
            for secret in (*secrets, "sixteen characters", "token-of-ours"):
                assert secret not in body


@pytest.mark.wide
def test_hostile_clients_hold_up_no_epoch(steps: Steps, port: int) -> None:
    """Many that say nothing and many that ask without end: the run goes on, and copies all."""
    with running(steps), ExitStack() as stack:
        wait(lambda: asked(port, "/healthz")[0] == 200)
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        wait(lambda: {t["state"] for t in shown(port)["status"]["tables"]} == {"following"})
    steps.must_be_equal("t", "id", "n")


def test_a_state_store_that_is_slow_holds_up_no_health(
    steps: Steps, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr(kept, "read_status", lambda store: held.wait(PATIENCE_SECONDS))
    with running(steps):
        try:
            wait(lambda: asked(port, "/healthz")[0] == 200)
            askers = [threading.Thread(target=asked, args=(port, "/status.json")) for _ in range(20)]
            for asker in askers:
                asker.start()
            wait(lambda: asked(port, "/healthz")[0] == 200)
            assert shown(port)["status"] is None
            for asker in askers:
                asker.join()
        finally:
            held.set()


def test_a_run_whose_loop_hangs_is_not_healthy(
    steps: Steps, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catchment.page.health.PATIENCE_SECONDS", 1.0)
    held, hang = threading.Event(), threading.Event()

    def committed(report: Report) -> None:
        if hang.is_set():
            held.wait(PATIENCE_SECONDS)

    with running(steps, Observer(committed=committed)):
        wait(lambda: asked(port, "/healthz")[0] == 200)
        hang.set()
        wait(lambda: asked(port, "/healthz")[0] == 503)
        assert asked(port, "/healthz")[1].startswith("no epoch and no rest for ")
        assert shown(port)["fault"].startswith("no epoch and no rest for ")
        held.set()
        hang.clear()
        wait(lambda: asked(port, "/healthz")[0] == 200)


def test_health_before_the_first_epoch_and_after_a_long_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = SetClocks(steady=1000)
    put(monkeypatch, clocks)
    health = Health(2.0)
    health.doing("starting Spark")
    assert health.fault(()) == "no epoch yet: starting Spark"
    health.turned()
    assert health.fault(()) == ""
    clocks.steady = 1000 + HEALTHY_SECONDS + 2
    assert health.fault(()) == ""
    clocks.steady += 10
    away = Trouble("-80", 0, 7, "ConnectionLost", "refused")
    assert health.fault([away]) == (
        "no epoch and no rest for 72 s; shard -80 is away since 1970-01-01T00:00:00Z (try 7): refused"
    )
