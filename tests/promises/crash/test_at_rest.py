"""A source at rest: settles go on, and what metrics and status say is true from a run's first turn on."""

import json
import logging
import math
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.model.epoch_number import gci_of
from catchment.sink.delta.epochs.table import EpochsTable
from tests.layers.sink.lakes import files_of
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life
from tests.promises.exact.feedrun import FeedRun
from tests.world.patience import PATIENCE_SECONDS
from tests.world.prepared import prepare, roll_back_prepared

KEPT_SECONDS = 4


class Scrape:
    """The metrics file of a life."""

    def __init__(self, life: Life) -> None:
        self.file = life.directory / "life.prom"

    def value(self, name: str, **labels: str) -> float | None:
        """A sample, None while it is not there."""
        wanted = ",".join(f'{label}="{text}"' for label, text in sorted({"feed": "life", **labels}.items()))
        found = re.search(rf"^catchment_{name}{{{re.escape(wanted)}}} (\S+)$", self._text(), re.MULTILINE)
        return float(found[1]) if found else None

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until `holds` of the file."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"still not: {what}\n{self._text()}"
            time.sleep(0.1)

    def _text(self) -> str:
        return self.file.read_text() if self.file.exists() else ""


def described(life: Life, **sink: object) -> Scrape:
    scrape = Scrape(life)
    life.describe(sink={"path": str(life.lake), **sink}, metrics={"file": str(scrape.file)})
    return scrape


@pytest.fixture
def forgetful(pair: dict[str, PrivateServer], live: MakeLife) -> Iterator[dict[str, PrivateServer]]:
    """The shards with a short retention; nothing is removed, since no log file ends meanwhile. What a test leaves
    prepared is rolled back before its tables are dropped."""
    (kept,) = {server.sql("SELECT @@global.binlog_expire_logs_seconds")[0][0] for server in pair.values()}
    for server in pair.values():
        server.sql(f"SET GLOBAL binlog_expire_logs_seconds = {KEPT_SECONDS}")
    yield pair
    for server in pair.values():
        roll_back_prepared(server)
        server.sql(f"SET GLOBAL binlog_expire_logs_seconds = {kept}")


@pytest.mark.wide
def test_changes_are_settled_at_rest(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife
) -> None:
    life = live(pair)
    life.load(60)
    scrape = described(life, settle="6s")
    table = f"{life.schema}.t00"
    with FeedRun(life.feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        life.touch(1)
        newest = run.wait_for_log(pair).epoch
        epochs = len(run.epochs)
        scrape.wait("a settle", lambda: life.settled(table) == newest)
        scrape.wait("its metric", lambda: scrape.value("unsettled_rows", table=table) == 0)
        scrape.wait("no floor", lambda: scrape.value("floor_lag_bytes", shard="-80") is None)
        assert len(run.epochs) == epochs
    assert not files_of(read(life.feed, table)).changes
    life.must_be_exact()


def test_metrics_of_a_run_that_begins_at_rest(
    forgetful: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    caplog: pytest.LogCaptureFixture,
) -> None:
    life = live(forgetful)
    life.load(20)
    scrape = described(life)
    with FeedRun(life.feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        prepare(forgetful["-80"], "'old'", f"DELETE FROM {life.schema}.t00 WHERE id = 3")
        newest = run.wait_for_log(forgetful).epoch
    scrape.file.unlink()
    caplog.clear()  # on a slow machine the first run, too, may have come near the retention
    time.sleep(KEPT_SECONDS)
    with FeedRun(life.feed) as run:
        scrape.wait("a turn", scrape.file.exists)
        assert not run.epochs
    assert scrape.value("epoch_gci") == gci_of(newest)
    assert scrape.value("copy_rows", table=f"{life.schema}.t00") == 40
    assert (scrape.value("lag_seconds") or math.inf) < KEPT_SECONDS
    assert (scrape.value("log_retention_left_seconds", shard="-80") or math.inf) < 0  # since the PREPARE
    assert (scrape.value("log_retention_left_seconds", shard="80-") or 0) > 0
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    (warning,) = [record.getMessage() for record in warned if "keeps its log" in record.getMessage()]
    assert re.search(r"shard -80 .* \(XA RECOVER\)", warning)


def test_a_lag_that_a_pause_left_is_told_before_the_first_epoch(
    forgetful: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    caplog: pytest.LogCaptureFixture,
) -> None:
    life = live(forgetful)
    life.load(20)
    with FeedRun(life.feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
    time.sleep(KEPT_SECONDS)
    life.touch(1, shard="80-")
    told: list[str] = []
    with FeedRun(life.feed, fault=lambda place: told.append(caplog.text)) as run:
        run.wait_for_log(forgetful)
    assert re.search("shard 80- keeps its log for 4 s, .* already: set a longer", told[0])


def status_epoch(life: Life, capsys: pytest.CaptureFixture[str]) -> int:
    capsys.readouterr()
    assert execute(["status", str(life.file), "--json"]) == 0
    epoch: int = json.loads(capsys.readouterr().out)["epoch"]
    return epoch


def test_status_tells_the_lakes_epoch_after_the_state_store_was_lost_or_restored(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    life = live(pair)
    life.load(20)
    assert life.run() == 0
    older = tmp_path / "older.db"
    shutil.copy(life.state, older)
    life.touch(1)
    assert life.run() == 0
    row = EpochsTable(life.lake, "life").newest()
    assert row is not None
    for lost in (True, False):
        life.state.unlink()
        if not lost:
            shutil.copy(older, life.state)
        for _ in range(2):  # the second run finds what the first one put there
            assert life.run() == 0
            assert status_epoch(life, capsys) == row.commit.epoch
        assert EpochsTable(life.lake, "life").newest() == row
    life.touch(2)
    assert life.run() == 0
    life.must_be_exact()
    assert status_epoch(life, capsys) > row.commit.epoch
