"""A source at rest: settles go on, and what metrics and log say is true from a run's first turn on."""

import logging
import re
from collections.abc import Iterator

import pytest

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.model.epoch_number import gci_of
from tests.layers.sink.lakes import files_of
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life
from tests.promises.exact.feedrun import FeedRun
from tests.world.patience import until
from tests.world.prepared import prepare, roll_back_prepared
from tests.world.worlds import SetClocks, put

KEPT_SECONDS = 3600


class Scrape:
    """The metrics file of a life."""

    def __init__(self, life: Life) -> None:
        self.file = life.directory / "life.prom"

    def value(self, name: str, **labels: str) -> float | None:
        """A sample, None while it is not there."""
        wanted = ",".join(f'{label}="{text}"' for label, text in sorted({"feed": "life", **labels}.items()))
        text = self.file.read_text() if self.file.exists() else ""
        found = re.search(rf"^catchment_{name}{{{re.escape(wanted)}}} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else None


def described(life: Life, **sink: object) -> Scrape:
    scrape = Scrape(life)
    life.describe(sink={"path": str(life.lake), **sink}, metrics={"file": str(scrape.file)})
    return scrape


@pytest.fixture
def forgetful(pair: dict[str, PrivateServer], live: MakeLife) -> Iterator[dict[str, PrivateServer]]:
    """The shards with a retention of an hour; nothing is removed, since no log file ends meanwhile. What a test leaves
    prepared is rolled back before its tables are dropped."""
    (kept,) = {server.sql("SELECT @@global.binlog_expire_logs_seconds")[0][0] for server in pair.values()}
    for server in pair.values():
        server.sql(f"SET GLOBAL binlog_expire_logs_seconds = {KEPT_SECONDS}")
    yield pair
    for server in pair.values():
        roll_back_prepared(server)
        server.sql(f"SET GLOBAL binlog_expire_logs_seconds = {kept}")


class Later(SetClocks):
    """Clocks that a test sets forward, and that go on from there."""

    by_us = 0

    def now_us(self) -> int:
        """Later than it is."""
        return super().now_us() + self.by_us


def test_changes_are_settled_at_rest(pair: dict[str, PrivateServer], live: MakeLife) -> None:
    life = live(pair)
    life.load(60)
    scrape = described(life, settle="1s")
    table = f"{life.schema}.t00"
    with FeedRun(life.feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        life.touch(1)
        newest = run.wait_for_log(pair).epoch
        epochs = len(run.epochs)
        until("a settle", lambda: life.settled(table) == newest)
        until("its metric", lambda: scrape.value("unsettled_rows", table=table) == 0)
        until("no floor", lambda: scrape.value("floor_lag_bytes", shard="-80") is None)
        assert len(run.epochs) == epochs
    assert not files_of(read(life.feed, table)).changes
    life.must_be_exact()


@pytest.mark.promise("the run warns before the log is purged, and its metrics count from its start")
def test_metrics_and_warnings_of_runs_behind_a_pause(
    forgetful: dict[str, PrivateServer],
    live: MakeLife,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One at rest, and one of which a shard has more log than it has time left to keep."""
    clocks = Later()
    put(monkeypatch, clocks)
    life = live(forgetful)
    life.load(20)
    scrape = described(life)
    with FeedRun(life.feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        prepare(forgetful["-80"], "'old'", f"DELETE FROM {life.schema}.t00 WHERE id = 3")
        newest = run.wait_for_log(forgetful).epoch
    scrape.file.unlink()
    caplog.clear()
    clocks.by_us = (KEPT_SECONDS + 60) * 1_000_000
    with FeedRun(life.feed) as run:
        until("a turn", scrape.file.exists)
        until("it rests", lambda: scrape.value("lag_seconds") is not None)
        assert not run.epochs
    assert scrape.value("epoch_gci") == gci_of(newest)
    assert scrape.value("copy_rows", table=f"{life.schema}.t00") == 40
    lag = scrape.value("lag_seconds")
    assert lag is not None
    assert 0 < lag < KEPT_SECONDS
    left = [scrape.value("log_retention_left_seconds", shard=shard) for shard in ("-80", "80-")]
    assert left[0] is not None
    assert left[1] is not None
    assert left[0] < 0 < left[1]  # since the PREPARE
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    (warning,) = [record.getMessage() for record in warned if "keeps its log" in record.getMessage()]
    assert re.search(r"shard -80 .* \(XA RECOVER\)", warning)
    caplog.clear()
    life.touch(1, shard="80-")
    told: list[str] = []
    clocks.by_us *= 2
    with FeedRun(life.feed, fault=lambda place: told.append(caplog.text)) as run:
        run.wait_for_log(forgetful)
    assert re.search("shard 80- keeps its log for 3,600 s, .* already: set a longer", told[0])
