"""Metrics of a run's life: there from its first moment on, and a file that does not look alive behind its end."""

import logging
import os
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from catchment.model.throttle import Breach, Check, Throttled
from catchment.state.notes import ErrorNote, Trouble
from catchment.watch.vitals import Vitals

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
def vitals(clock: Clock) -> Vitals:
    return Vitals("shop", ["-80", "80-"], clock=clock)


def samples(file: Path) -> dict[str, float]:
    """The samples of a metrics file, as `catchment_up` or `catchment_shard_away_seconds -80`: with the values of all
    labels but the feed's."""
    found = {}
    for family in text_string_to_metric_families(file.read_text()):
        for sample in family.samples:
            labels = [value for name, value in sample.labels.items() if name != "feed"]
            found[" ".join([sample.name, *labels])] = sample.value
    return found


def test_the_file_of_a_run_that_lives_and_of_one_that_has_ended(
    vitals: Vitals, clock: Clock, tmp_path: Path
) -> None:
    file = tmp_path / "shop.prom"
    vitals.write(file)
    found = samples(file)
    assert (found["catchment_up"], found["catchment_written_timestamp_seconds"]) == (1, START)
    assert not any(name.startswith("catchment_exit_code") for name in found)
    clock.now += 70
    vitals.ended(3, ErrorNote("Diverged", "shard -80: ...", "-80", 1, 1))
    vitals.write(file)
    found = samples(file)
    assert (found["catchment_up"], found["catchment_written_timestamp_seconds"]) == (0, START + 70)
    assert found["catchment_exit_code Diverged"] == 3


def test_a_shard_that_is_throttled(vitals: Vitals, clock: Clock, tmp_path: Path) -> None:
    lag = Breach(Check.REPLICA_LAG, "of db1b:3306 is 12, and is to be at most 5", 12, 5)
    flag = Breach(Check.FLAG_FILE, "wait exists")
    since = int(START * 1e6)
    clock.now += 90
    vitals.observe_throttled((Throttled("-80", since, lag), Throttled("80-", since, flag)))
    vitals.write(tmp_path / "shop.prom")
    found = samples(tmp_path / "shop.prom")
    assert (found["catchment_copy_throttled -80"], found["catchment_copy_throttled 80-"]) == (90, 90)
    assert found["catchment_copy_throttled_value replica_lag -80"] == 12
    assert found["catchment_copy_throttled_limit replica_lag -80"] == 5
    assert "catchment_copy_throttled_value flag_file 80-" not in found
    vitals.observe_throttled(())
    vitals.write(tmp_path / "shop.prom")
    found = samples(tmp_path / "shop.prom")
    assert (found["catchment_copy_throttled -80"], found["catchment_copy_throttled 80-"]) == (0, 0)
    assert not any(name.startswith("catchment_copy_throttled_value") for name in found)


def test_a_run_that_was_stopped_names_no_error(vitals: Vitals, tmp_path: Path) -> None:
    vitals.ended(130, None)
    vitals.write(tmp_path / "shop.prom")
    assert samples(tmp_path / "shop.prom")["catchment_exit_code "] == 130


def test_a_shard_that_is_away(vitals: Vitals, clock: Clock, tmp_path: Path) -> None:
    away = Trouble("-80", int(START * 1e6), 7, "ConnectionLost", "refused", "the shard")
    clock.now += 90
    for troubles, seconds in (((away,), 90), ((), 0)):
        vitals.observe_troubles(troubles)
        vitals.write(tmp_path / "shop.prom")
        found = samples(tmp_path / "shop.prom")
        assert found["catchment_shard_away_seconds -80"] == seconds
        assert found["catchment_shard_away_seconds 80-"] == 0
        assert found["catchment_state_away_seconds"] == 0


def test_a_state_store_that_is_away(vitals: Vitals, clock: Clock, tmp_path: Path) -> None:
    away = Trouble("", int(START * 1e6), 7, "StateAway", "refused", "the state store")
    clock.now += 90
    for troubles, seconds in (((away,), 90), ((), 0)):
        vitals.observe_troubles(troubles)
        vitals.write(tmp_path / "shop.prom")
        found = samples(tmp_path / "shop.prom")
        assert found["catchment_state_away_seconds"] == seconds
        assert found["catchment_shard_away_seconds -80"] == 0


def test_errors_are_counted_by_kind(vitals: Vitals, tmp_path: Path) -> None:
    vitals.count([ErrorNote("ConnectionLost", "a", "", 1, 2, 40), ErrorNote("ConnectionLost", "b", "", 1, 1)])
    vitals.write(tmp_path / "shop.prom")
    assert samples(tmp_path / "shop.prom")["catchment_errors_total ConnectionLost"] == 41


def test_file_is_replaced_whole(vitals: Vitals, tmp_path: Path) -> None:
    file = tmp_path / "shop.prom"
    vitals.write(file)
    wrong: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            text = file.read_text()
            if not text.endswith("\n") or 'catchment_up{feed="shop"} 1.0' not in text:
                wrong.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(200):
        vitals.write(file)
    done.set()
    reader.join()
    assert not wrong
    assert os.listdir(tmp_path) == ["shop.prom"]


def test_file_that_cannot_be_written_does_not_stop_the_feed(
    vitals: Vitals, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        vitals.write(tmp_path / "absent" / "shop.prom")
    assert "metrics.file: cannot write" in caplog.text
