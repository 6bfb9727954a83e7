"""Metrics: right numbers, as a file and over HTTP."""

import logging
import math
import os
import socket
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.model.epoch import Refusal
from catchment.model.errors import ConfigError
from catchment.run.metrics import Metrics
from tests.run import records

START = 1_700_000_000.0


class Clock:
    """A clock that the test sets."""

    now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics("shop", {"-80": 7200.0, "80-": None}, clock=clock)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"catchment_{name}", {"feed": "shop", **labels})


def test_two_epochs(metrics: Metrics, clock: Clock) -> None:
    for turn in (1, 2):
        metrics.observe(records.manifest(turn), records.commit(turn), {"read": 0.2, "apply": 0.05})
    clock.now = START + 5
    assert value(metrics, "epoch") == records.commit(2).epoch
    assert value(metrics, "lag_seconds") == pytest.approx(3)
    assert value(metrics, "cut_window_seconds") == pytest.approx(0.00012)
    assert value(metrics, "rows_copied_total", table="shop.orders") == 20
    assert value(metrics, "changes_total", table="shop.orders", kind="upsert") == 14
    assert value(metrics, "changes_total", table="shop.orders", kind="delete") == 4
    assert value(metrics, "read_bytes_total", what="log") == 8192
    assert value(metrics, "read_bytes_total", what="chunk") == 1024
    assert value(metrics, "copy_rows", table="shop.orders") == 20
    assert value(metrics, "copy_rows_expected", table="shop.orders") == 100
    assert value(metrics, "epoch_phase_seconds_count", phase="read") == 2
    assert value(metrics, "epoch_phase_seconds_sum", phase="apply") == pytest.approx(0.1)


def test_a_loop_that_hangs_is_seen_to_fall_behind(metrics: Metrics, clock: Clock) -> None:
    clock.now = START + 100
    assert value(metrics, "lag_seconds") == 100


def test_retention_left(metrics: Metrics, clock: Clock) -> None:
    assert value(metrics, "log_retention_left_seconds", shard="-80") == 7200
    assert value(metrics, "log_retention_left_seconds", shard="80-") == math.inf
    clock.now = START + 3601
    assert value(metrics, "log_retention_left_seconds", shard="-80") == 3599
    metrics.observe(records.manifest(3601), records.commit(3601), {})
    assert value(metrics, "log_retention_left_seconds", shard="-80") == 7200


def test_a_source_at_rest_is_no_lag_and_no_imminent_purge(metrics: Metrics, clock: Clock) -> None:
    metrics.observe(records.manifest(1), records.commit(1), {})
    clock.now = START + 7210
    metrics.at_rest(int((START + 7200) * 1e6))
    assert value(metrics, "lag_seconds") == pytest.approx(10)
    assert value(metrics, "log_retention_left_seconds", shard="-80") == pytest.approx(7190)


def test_a_copy_that_stands_still_and_goes_on(metrics: Metrics) -> None:
    metrics.observe_refused([Refusal("-80", records.ORDERS, "locked", 7)])
    assert value(metrics, "copy_refused_epochs", shard="-80", table="shop.orders") == 7
    metrics.observe_refused([])
    assert value(metrics, "copy_refused_epochs", shard="-80", table="shop.orders") is None


def test_a_floor_that_lags_and_a_shard_that_is_copied(metrics: Metrics) -> None:
    metrics.observe_floor_lag({"-80": 70_000_000, "80-": 0})
    assert value(metrics, "floor_lag_bytes", shard="-80") == 70_000_000
    metrics.observe_floor_lag({"80-": 0})
    assert value(metrics, "floor_lag_bytes", shard="-80") is None


def test_file_is_replaced_whole(metrics: Metrics, tmp_path: Path) -> None:
    file = tmp_path / "shop.prom"
    metrics.observe_unfolded("shop.orders", 0.04)
    metrics.write(file)
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            text = file.read_text()
            if (
                not text.endswith("\n")
                or 'catchment_unfolded_share{feed="shop",table="shop.orders"} 0.04' not in text
            ):
                wrong.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(200):
        metrics.write(file)
    done.set()
    reader.join()
    assert not wrong
    assert os.listdir(tmp_path) == ["shop.prom"]


def test_file_that_cannot_be_written_does_not_stop_the_feed(
    metrics: Metrics, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        metrics.write(tmp_path / "absent" / "shop.prom")
    assert "metrics.file: cannot write" in caplog.text


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def test_http_on_the_loopback_address(metrics: Metrics, port: int) -> None:
    stop: Callable[[], None] = metrics.serve(port)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            assert 'catchment_lag_seconds{feed="shop"}' in answer.read().decode()
        with pytest.raises(ConfigError, match=rf"metrics.port: cannot listen on 127.0.0.1:{port}"):
            metrics.serve(port)
    finally:
        stop()
    metrics.serve(port)()
