"""`catchment.changes`: a job that takes only what changed has the table, whenever it comes."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import catchment
from catchment.model.epoch import Part
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, ConfigError, SinkError
from catchment.sink.delta.log import checkpoint
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.endurance import passing, tail
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, shape
from tests.layers.sink.test_open import Copied
from tests.world.settled import carry_out

TABLE = "shop.orders"
TOLD = Form(changes=True)


def settle(root: Path, form: Form = TOLD) -> None:
    carry_out(UpkeepOrder(str(root), FEED, 1, 3600.0, form=form))


def take(copy: dict[Any, Any], changes: Any) -> None:
    """Do what changes say to a job's own copy, by key."""
    rows = changes.arrow().to_pylist()
    assert [row["_commit_version"] for row in rows] == sorted(row["_commit_version"] for row in rows)
    by_version: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_version.setdefault(row["_commit_version"], []).append(row)
    for _, version in sorted(by_version.items()):
        for row in version:
            if row["_change_type"] in ("delete", "update_preimage"):
                assert copy.pop((row["_shard"], row["id"])) == (row["_epoch"], row["sig"])
        for row in version:
            if row["_change_type"] in ("insert", "update_postimage"):
                assert (row["_shard"], row["id"]) not in copy
                copy[row["_shard"], row["id"]] = row["_epoch"], row["sig"]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in (1, 2))])
def test_a_job_that_takes_only_changes_has_the_table(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    table = Copied(tmp_path, rng)
    copy: dict[Any, Any] = {}
    done: int | None = None
    table.commit()
    settle(tmp_path)
    for _ in range(12 if seed == 0 else 25):
        table.commit()
        if rng.random() < 0.5:
            settle(tmp_path)
        if rng.random() < 0.4:
            changes = catchment.changes(tmp_path, TABLE, done)
            take(copy, changes)
            done = changes.until
            assert copy == table.states[done]
    settle(tmp_path)
    changes = catchment.changes(tmp_path, TABLE, done)
    take(copy, changes)
    assert copy == table.states[table.feeder.epoch]
    assert changes.polars().height == changes.arrow().num_rows
    assert catchment.changes(tmp_path, TABLE, changes.until).arrow().num_rows == 0
    inserts = catchment.changes(tmp_path, TABLE)
    assert inserts.since is None
    assert {(r["_shard"], r["id"]): (r["_epoch"], r["sig"]) for r in inserts.arrow().to_pylist()} == copy
    assert inserts.duckdb().aggregate("count(*)").fetchall() == [(len(copy),)]


def test_an_epoch_that_brought_nothing_is_as_good_as_the_one_before(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    feeder.put(ORDERS, (1, "a"), part=Part.BASE)
    settle(tmp_path)
    feeder.epoch += 1
    feeder.commit((ORDERS,))
    assert catchment.changes(tmp_path, TABLE, since=1, until=2).arrow().num_rows == 0
    feeder.put(ORDERS, (1, "b"))
    settle(tmp_path)
    found = catchment.changes(tmp_path, TABLE, since=2)
    assert found.until == 3
    assert [row["sig"] for row in found.arrow().to_pylist()] == ["a", "b"]


def test_a_job_that_comes_hours_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change data stays for six hours more than files, and so does what tells whether an epoch was settled. The job
    begins with an epoch at which the table had been at rest for days."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 5)
    with passing(4 * 86_400.0) as clock:
        feeder = Feeder(tmp_path)
        for number in range(5):
            feeder.put(ORDERS, (1, f"a{number}"))
            settle(tmp_path)
        settle(tmp_path)  # of the last trim it makes a checkpoint, with which the log will begin
        clock.seconds += 3 * 86_400.0
        feeder.epoch += 1
        feeder.commit((ORDERS,))
        since = feeder.epoch
        for _ in range(36):
            clock.seconds += 600.0
            feeder.put(ORDERS, (1, f"b{feeder.epoch}"))
            settle(tmp_path)
        first = min(int(path.name[:20]) for path in (tail(tmp_path) / "_delta_log").glob("*.json"))
        assert first > 0, "the tail's log is thinned out"
        changes = catchment.changes(tmp_path, TABLE, since)
        assert changes.arrow().num_rows == 36 * 2
        last = feeder.epoch - 3
        assert catchment.read(tmp_path, TABLE, last).arrow()["_epoch"].to_pylist() == [last]


def _unsettled(feeder: Feeder) -> None:
    feeder.put(ORDERS, (1, "c"))
    feeder.put(ORDERS, (1, "d"))
    settle(feeder.root)


def _untold(feeder: Feeder) -> None:
    feeder.put(ORDERS, (1, "c"))
    settle(feeder.root, Form())
    feeder.put(ORDERS, (1, "d"))
    settle(feeder.root)


def _cleaned(feeder: Feeder) -> None:
    feeder.put(ORDERS, (1, "c"))
    settle(feeder.root)
    for path in feeder.root.rglob("cdc-*.parquet"):
        path.unlink()


@pytest.mark.parametrize(
    ("prepare", "since", "error", "said"),
    [
        (
            _unsettled,
            3,
            SinkError,
            "and not settled as such; the one before it that was is 1970-01-01T00:00:00Z.0002",
        ),
        (_untold, 2, SinkError, "were not all written with change data; set sink.changes: true"),
        (_cleaned, 2, SinkError, "cannot be read"),
        (lambda _: None, 7, ConfigError, "has not committed epoch"),
    ],
)
def test_what_cannot_be_told_is_said(
    tmp_path: Path, prepare: Callable[[Feeder], None], since: int, error: type[CatchmentError], said: str
) -> None:
    feeder = Feeder(tmp_path)
    feeder.put(ORDERS, (1, "a"), part=Part.BASE)
    settle(tmp_path)
    feeder.put(ORDERS, (1, "b"))
    settle(tmp_path)
    prepare(feeder)
    with pytest.raises(error) as raised:
        catchment.changes(tmp_path, TABLE, since).arrow()
    assert said in str(raised.value)
    assert "shop.orders" in str(raised.value) or epoch_text(since) in str(raised.value)


def test_a_table_before_its_first_settle(tmp_path: Path) -> None:
    Feeder(tmp_path).put(ORDERS, (1, "a"), part=Part.BASE)
    with pytest.raises(SinkError, match="nothing is settled yet"):
        catchment.changes(tmp_path, TABLE)


def test_a_column_that_readers_of_changes_add_turns_them_off_for_its_table(tmp_path: Path) -> None:
    taken = shape("taken", {"id": INT, "_Commit_Version": TEXT}, ("id",))
    feeder = Feeder(tmp_path)
    for _ in range(2):
        feeder.put(taken, (1, "a"))
        settle(tmp_path)
    with pytest.raises(
        SinkError, match="a column _change_type, _commit_version or _commit_timestamp of its own"
    ):
        catchment.changes(tmp_path, "shop.taken", 1)
    assert catchment.read(tmp_path, "shop.taken").arrow().to_pylist()[0]["_Commit_Version"] == "a"
