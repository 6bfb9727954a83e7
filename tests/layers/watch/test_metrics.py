"""Metrics of epochs: right numbers."""

import math

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number
from catchment.model.position import GroupKind, XaGroup, Xid
from catchment.model.refusal import Refusal
from catchment.watch.metrics import Metrics
from tests.world import records

START = 1_700_000_000.0


class Clock:
    """A clock that the test sets."""

    now = START

    def __call__(self) -> float:
        return self.now


def manifest(turn: int) -> Manifest:
    """The record of an epoch of two shards."""
    record = records.manifest(turn)
    state = record.cut.shards["-80"]
    return records.with_shards(record, {"-80": state, "80-": replace(state, copies=())})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def metrics(clock: Clock) -> Metrics:
    return Metrics(manifest(0), {"-80": 7200.0, "80-": None}, registry=CollectorRegistry(), clock=clock)


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"catchment_{name}", {"feed": "shop", **labels})


def epoch(metrics: Metrics) -> int:
    """The newest epoch's number, from its halves."""
    return epoch_number(int(value(metrics, "epoch_gci") or 0), int(value(metrics, "epoch_micro_gci") or 0))


def test_every_digit_of_an_epoch_can_be_scraped(metrics: Metrics) -> None:
    number = 7710412456140472323
    assert int(float(number)) != number
    metrics.observe(records.numbered(manifest(1), number), {})
    assert epoch(metrics) == number
    text = generate_latest(metrics.registry).decode()
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines())
    gci, micro = (
        int(float(samples[f'catchment_epoch_{half}{{feed="shop"}}'])) for half in ("gci", "micro_gci")
    )
    assert (gci << 32) + micro == number


def test_two_epochs(metrics: Metrics, clock: Clock) -> None:
    for turn in (1, 2):
        metrics.observe(manifest(turn), {"read": 0.2, "apply": 0.05})
    clock.now = START + 5
    assert epoch(metrics) == manifest(2).epoch
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
    metrics.observe(manifest(3601), {})
    assert value(metrics, "log_retention_left_seconds", shard="-80") == 7200


def test_the_log_of_a_shard_that_is_away_is_needed_since_it_went(metrics: Metrics, clock: Clock) -> None:
    metrics.observe(replace(manifest(7000), absent={"-80": int((START + 100) * 1e6)}), {})
    clock.now = START + 7100
    assert value(metrics, "log_retention_left_seconds", shard="-80") == pytest.approx(200)
    assert "may be purged in 200 s" in metrics.warn_of_purges()["-80"]
    metrics.at_rest(int(clock.now * 1e6), {"-80": int((START + 100) * 1e6)})
    assert value(metrics, "log_retention_left_seconds", shard="-80") == pytest.approx(200)
    metrics.at_rest(int(clock.now * 1e6))
    assert value(metrics, "log_retention_left_seconds", shard="-80") == pytest.approx(7200)
    assert not metrics.warn_of_purges()


def test_a_shard_that_is_away_lags_since_it_went_and_the_feed_with_it(metrics: Metrics, clock: Clock) -> None:
    gone = int((START + 100) * 1e6)
    metrics.observe(replace(manifest(700), absent={"-80": gone}), {})
    clock.now = START + 701
    assert value(metrics, "shard_lag_seconds", shard="-80") == pytest.approx(601)
    assert value(metrics, "shard_lag_seconds", shard="80-") == pytest.approx(1)
    assert value(metrics, "lag_seconds") == pytest.approx(601)
    metrics.at_rest(int(clock.now * 1e6), {"-80": gone})
    assert value(metrics, "shard_lag_seconds", shard="80-") == pytest.approx(0)
    assert value(metrics, "lag_seconds") == pytest.approx(601)
    metrics.at_rest(int(clock.now * 1e6))
    assert value(metrics, "lag_seconds") == pytest.approx(0)


def test_a_source_at_rest_is_no_lag_and_no_imminent_purge(metrics: Metrics, clock: Clock) -> None:
    metrics.observe(manifest(1), {})
    clock.now = START + 7210
    metrics.at_rest(int((START + 7200) * 1e6))
    assert value(metrics, "lag_seconds") == pytest.approx(10)
    assert value(metrics, "log_retention_left_seconds", shard="-80") == pytest.approx(7190)


def test_what_an_earlier_runner_left(clock: Clock) -> None:
    clock.now = START + 172_800
    standing = manifest(5)
    group = XaGroup(
        GroupKind.XA_PREPARE, False, Xid(1, b"x", b""), records.offset(1), records.offset(2), 0, int(START)
    )
    state = standing.cut.shards["-80"]
    held = replace(state, position=replace(state.position, prepared=(group.prepared,)))
    standing = records.with_shards(standing, {**standing.cut.shards, "-80": held})
    kept = {"-80": 259_200.0, "80-": 259_200.0}
    metrics = Metrics(standing, kept, registry=CollectorRegistry(), clock=clock)
    assert epoch(metrics) == standing.epoch
    assert value(metrics, "copy_rows", table="shop.orders") == 50
    assert value(metrics, "rows_copied_total", table="shop.orders") is None
    assert value(metrics, "lag_seconds") == pytest.approx(172_795)
    assert value(metrics, "log_retention_left_seconds", shard="80-") == pytest.approx(86_405)
    metrics.at_rest(int(clock.now * 1e6))
    assert value(metrics, "log_retention_left_seconds", shard="80-") == pytest.approx(259_200)
    assert value(metrics, "log_retention_left_seconds", shard="-80") == pytest.approx(86_400)


def test_a_purge_that_nears_is_told_once(
    metrics: Metrics, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for now, told in ((5000, 0), (5401, 1), (5500, 1), (7201, 1)):
        clock.now = START + now
        metrics.warn_of_purges()
        assert len(caplog.messages) == told
    metrics.observe(manifest(7201), {})
    metrics.warn_of_purges()
    clock.now = START + 15_000
    metrics.warn_of_purges()
    what = "feed shop: shard -80 keeps its log for 7,200 s, and what the feed needs of it may be purged"
    how = "set a longer retention there (binlog_expire_logs_seconds, expire_logs_days) until the feed has caught up"
    assert caplog.messages == [f"{what} in 1,799 s: {how}", f"{what} already: {how}"]


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
