"""Tables that cannot be carried: a feed begins without them, or says of all of them what to write."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from catchment.cli.main import execute
from catchment.model.errors import SourceError, Unsupported
from catchment.sink.delta.epochs.table import EpochsTable
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here

GOOD = ("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
BAD = (
    "CREATE TABLE nopk (id INT)",
    "CREATE TABLE `my isam` (id INT PRIMARY KEY) ENGINE=MyISAM",
    "CREATE TABLE taken (id INT PRIMARY KEY, _epoch INT)",
    "CREATE TABLE places (e ENUM('', 'x') PRIMARY KEY)",
)


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun; of `half`, one shard has a key and the other does not."""
    run_here(monkeypatch)
    made = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards))
    for shard in "ab":
        made.sql(shard, *GOOD, *BAD)
    made.sql("a", "CREATE TABLE half (id INT PRIMARY KEY)", "INSERT INTO half VALUES (1)")
    made.sql("b", "CREATE TABLE half (id INT)")
    return made


def carried(steps: Steps) -> list[str]:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return [shape.table.name for shape in row.manifest.shapes]


def test_all_of_them_are_told_at_once_with_what_to_paste(steps: Steps) -> None:
    with pytest.raises(Unsupported) as refused:
        steps.run()
    s = steps.schema
    first, *rest = str(refused.value).splitlines()
    assert first == "5 of the tables that `tables` takes cannot be carried:"
    assert [line.split(": ")[0] for line in rest[:5]] == [
        f"  {s}.half on shard b",
        f"  {s}.my isam on both shards",
        f"  {s}.nopk on both shards",
        f"  {s}.places on both shards",
        f"  {s}.taken on both shards",
    ]
    assert (
        rest[5] == "exclude them, by these lines under `tables`, or begin without them with `unusable: skip`:"
    )
    assert EpochsTable(steps.feed.sink.path, steps.feed.name).newest() is None
    steps.set(tables=[f"{s}.*", *yaml.safe_load("\n".join(rest[6:]))])
    steps.run()
    assert carried(steps) == ["t"]
    assert steps.lake("t", "id") == steps.source("t", "id")


@pytest.mark.promise("a feed starts without tables that it cannot carry, and names them")
def test_a_feed_begins_without_them(
    steps: Steps, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    steps.set(unusable="skip")
    s = steps.schema
    nopk = f"{s}.nopk (there is no primary key and no unique key of NOT NULL columns, when the feed began)"
    with caplog.at_level(logging.WARNING):
        steps.run()
    (told,) = caplog.messages
    assert told.startswith(f"5 tables match `tables` and are not carried: {s}.half (there is no primary key")
    assert nopk in told
    assert carried(steps) == ["t"]
    for shard in steps.servers:
        steps.sql(shard, "INSERT INTO nopk VALUES (1)", "INSERT INTO t VALUES (3)", "UPDATE half SET id = 9")
    steps.sql("b", "ALTER TABLE nopk ADD PRIMARY KEY (id)", "DROP TABLE `my isam`", "TRUNCATE taken")
    steps.must_be_equal("t", "id")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        steps.run()  # nopk is usable on one shard now: it is not taken up
    assert nopk in caplog.messages[0]
    assert len(caplog.messages) == 1
    capsys.readouterr()
    assert execute(["status", str(tmp_path / "feed.yaml")]) == 0
    name, _, why = nopk.partition(" ")
    assert f"not carried: {name} on {', '.join(steps.servers)} {why}" in capsys.readouterr().out.splitlines()


def test_what_a_feed_of_few_tables_makes_of_them(steps: Steps) -> None:
    """Where nothing else is chosen it does not begin. A rule that takes nothing but such tables is no slip."""
    steps.set(unusable="skip", tables=[f"{steps.schema}.nopk"])
    with pytest.raises(SourceError, match="all tables that `tables` takes cannot be carried"):
        steps.run()
    steps.set(tables=[f"{steps.schema}.t", f"{steps.schema}.no*"])
    steps.run()
    assert carried(steps) == ["t"]
