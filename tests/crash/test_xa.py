"""XA transactions, not followed yet: refused before the first cut, and named where they stand in the log."""

import pytest
from pyspark.sql import SparkSession

from catchment.demo.server import PrivateServer
from catchment.flow.sink.epochs import EpochsTable
from catchment.model.errors import Unsupported
from catchment.run import first_cut
from tests.crash.conftest import MakeLife


def prepare(server: PrivateServer, xid: str, statement: str) -> None:
    """Prepare an XA transaction and leave it, as a program that dies does."""
    server.sql(f"XA START '{xid}'", statement, f"XA END '{xid}'", f"XA PREPARE '{xid}'")


def test_rows_prepared_before_the_first_cut_are_waited_for_then_refused(
    pair: dict[str, PrivateServer],
    spark: SparkSession,
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = live(pair)
    life.load(20)
    monkeypatch.setattr(first_cut, "XA_WAIT_SECONDS", 0.5)
    prepare(pair["80-"], "early", f"DELETE FROM {life.schema}.t00 WHERE id = 3")
    capfd.readouterr()
    code = life.run()
    pair["80-"].sql("XA COMMIT 'early'")
    said = capfd.readouterr().err.splitlines()
    assert code == Unsupported.exit_code
    assert len(said) == 1
    assert "shard 80-" in said[0]
    assert "early" in said[0]
    assert life.run() == 0
    life.must_be_exact()


def test_an_xa_transaction_in_the_log_stops_the_feed_before_harm(
    pair: dict[str, PrivateServer],
    spark: SparkSession,
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
) -> None:
    life = live(pair)
    life.load(20)
    assert life.run() == 0
    before = EpochsTable(life.lake, "life").newest()
    prepare(pair["80-"], "late", f"DELETE FROM {life.schema}.t00 WHERE id = 3")
    pair["80-"].sql("XA COMMIT 'late'")
    file, _ = pair["80-"].log_end()
    capfd.readouterr()
    assert life.run() == Unsupported.exit_code
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 1
    assert "shard 80-" in said[0]
    assert f"{life.schema}.t00" in said[0]
    assert f"{file}:" in said[0]
    assert EpochsTable(life.lake, "life").newest() == before
