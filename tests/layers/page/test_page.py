"""The status page of a real run: what it shows, whether it calls it healthy, and that nobody who looks holds it up."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import catchment
from catchment.feed.runner import run_feed
from catchment.page import kept, server
from catchment.watch.report import Observer, Report, Rest
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.world.patience import PATIENCE_SECONDS, until

SCRIPT = "<script>alert(1)</script>"
FILES = ("/", "/page.css", "/page.js", "/icon.svg")
SECRETS = ("a secret of sixteen characters", "token-of-ours")


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
    begun.set(
        copy={"chunk_rows_max": 20, "group_time": "0s", "groups_per_shard": 1},
        status={"port": port},
        mask_key=SECRETS[0],
        notify={"url": f"http://127.0.0.1:9/{SECRETS[1]}"},
    )
    # Far more than is copied while the test looks.
    values = ", ".join(f"({key}, {key})" for key in range(1, 12_001))
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


def wait(what: str, holds: Callable[[], object]) -> None:
    """Wait until something holds of a page that may not be there yet, or have no room."""
    looked: list[object] = []

    def held() -> object:
        try:
            looked.append(holds())
        except (OSError, http.client.HTTPException) as error:
            looked.append(error)
            return False
        return looked[-1]

    until(what, held, seen=lambda: looked[-3:])


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


def await_health(port: int, status: int = 200) -> None:
    wait(f"/healthz has the status {status}", lambda: asked(port, "/healthz")[0] == status)


@pytest.mark.promise("the status page shows a run, whether it is healthy, and no secret")
def test_what_it_shows_of_a_run(steps: Steps, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred clients that say nothing hold it up as little as the clients that ask."""
    monkeypatch.setattr("catchment.page.history.STEP_SECONDS", 1)
    monkeypatch.setattr(server, "_READ_SECONDS", 0.3)
    monkeypatch.setattr(kept, "REFRESH_SECONDS", 0.1)
    hang, held = threading.Event(), threading.Event()

    def turned(told: Report | Rest) -> None:
        if hang.is_set():
            held.wait(PATIENCE_SECONDS)

    with running(steps, Observer(committed=turned, rested=turned)), ExitStack() as silent:
        await_health(port)
        for _ in range(100):
            silent.enter_context(socket.create_connection(("127.0.0.1", port)))
        await_health(port)
        must_show_the_copy(steps, port)
        must_be_complete_and_hide_secrets(steps, port)
        hang.set()
        monkeypatch.setattr("catchment.page.health.PATIENCE_SECONDS", 1.0)
        await_health(port, 503)
        assert asked(port, "/healthz")[1].startswith("no epoch and no rest for ")
        assert shown(port)["fault"].startswith("no epoch and no rest for ")
        hang.clear()
        held.set()
        await_health(port)
    with pytest.raises(ConnectionRefusedError):
        asked(port, "/")


def must_show_the_copy(steps: Steps, port: int) -> None:
    """Its rate, and an order that is given meanwhile."""
    wait("a rate is shown", lambda: (shown(port)["progress"] or {}).get("rate"))
    catchment.dump(steps.file, "pause", f"{steps.schema}.t", wait=PATIENCE_SECONDS)
    done = [(f"pause {steps.schema}.t", "done")]
    wait(
        "the order is shown",
        lambda: [(o["order"], o["state"]) for o in shown(port)["status"]["orders"]] == done,
    )
    found = shown(port)
    assert found["addresses"] == {
        name: f"{server.host}:{server.port}" for name, server in steps.servers.items()
    }
    assert {log["shard"] for log in found["progress"]["logs"]} == {"-80", "80-"}
    assert found["window_us"] >= 0
    names = [table["table"] for table in found["status"]["tables"]]
    assert names == [f"{steps.schema}.{SCRIPT}", f"{steps.schema}.t"]
    wait("rows are shown", lambda: sum(shown(port)["history"]["rows"]) > 0)
    wait("the run goes on", lambda: shown(port)["status"]["epoch"] > found["status"]["epoch"])


def must_be_complete_and_hide_secrets(steps: Steps, port: int) -> None:
    metrics = asked(port, "/metrics")[1]
    assert 'catchment_seconds_left{bound="likely",feed="' in metrics
    assert "catchment_log_backlog_bytes{" in metrics
    passwords = [server.password for server in steps.servers.values()]
    assert all(passwords)
    for path in (*FILES, "/status.json", "/metrics", "/healthz"):
        status, body = asked(port, path)
        assert status == 200
        assert not any(secret in body for secret in (*passwords, *SECRETS)), path
        if path in FILES:
            assert "http://" not in body.replace("http://www.w3.org/2000/svg", "")
            assert "https://" not in body
    assert asked(port, "/orders")[0] == 404
