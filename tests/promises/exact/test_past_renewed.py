"""Tables that keep their past and are copied again: what stands is compared, and only the differences are written.

What is expected is worked out here from what the plain tables had before and what the shards have now.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import catchment
from catchment.model.epoch import Manifest
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.layers.sink.test_modes import time_of
from tests.world.settled import settled

MODES = {"kept": "soft_delete", "logged": "append", "aged": "history"}
PROOF = ("INSERT INTO other VALUES (NULL)",)
PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"
Row = dict[str, Any]


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two shards with a table in each mode that keeps the past; it has caught up and is settled, and rows have
    a past."""
    run_here(monkeypatch)
    found = Steps(tmp_path, servers, fresh_schema(*servers.values()))
    found.set(modes=[{"match": f"*.{table}", "mode": mode} for table, mode in MODES.items()])
    found.everywhere("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", *PROOF)
    for table in MODES:
        for shard in servers:
            found.sql(
                shard,
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), n INT) {PARTS}",
                f"INSERT INTO {table} SELECT seq, CONCAT('{shard}', seq), seq FROM seq_1_to_20",
            )
    found.run()
    for table in MODES:
        found.everywhere(
            f"DELETE FROM {table} WHERE id IN (3, 13)", f"UPDATE {table} SET v = 'b' WHERE id IN (4, 14)"
        )
    found.run()
    settled(found.feed)
    return found


def newest(steps: Steps) -> Manifest:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def plain(steps: Steps, table: str) -> list[Row]:
    """What any reader has of a plain table."""
    rows = pl.read_delta(str(table_dir(steps.feed.sink.path, TableId(steps.schema, table)))).to_dicts()
    return sorted(rows, key=repr)


def exact_since(steps: Steps, table: str) -> int:
    """The first epoch as of which the table, which was stale, is not."""
    found = 0
    for row in reversed(EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()):
        if any(one.table.name == table for one in row.manifest.stale):
            break
        found = row.manifest.epoch
    return found


def source(steps: Steps, table: str, *columns: str) -> dict[tuple[str, int], Row]:
    """The rows that the shards have, by shard and key."""
    rows = steps.source(table, "id", *columns)
    return {(row[0], row[1]): {"id": row[1], **dict(zip(columns, row[2:], strict=True))} for row in rows}


def expected(mode: str, before: list[Row], now: Mapping[tuple[str, int], Row], epoch: int) -> list[Row]:
    """What a table has whose rows of before become those of now with an epoch, and that keeps its past."""
    of_now = {"history": _lasts, "append": _last_of(before), "soft_delete": lambda row: not row["_deleted"]}[
        mode
    ]
    old = {(row["_shard"], row["id"]): row for row in before if of_now(row)}
    rows = [
        row
        for row in before
        if (row["_shard"], row["id"]) not in old or row is not old[row["_shard"], row["id"]]
    ]
    marks: Row = {} if mode == "history" else {"_deleted": False}
    times: Row = (
        {"_epoch_to": None, "_valid_from": time_of(epoch), "_valid_to": None} if mode == "history" else {}
    )
    for key in {*old, *now}:
        had, has = old.get(key), now.get(key)
        if had is not None and has is not None and all(had[name] == has[name] for name in has):
            rows.append({**had, **has})
            continue
        if had is not None:
            rows += _ended(mode, had, epoch, replaced=has is not None)
        if has is not None and mode == "soft_delete":
            rows = [row for row in rows if (row["_shard"], row["id"]) != key]
        if has is not None:
            rows.append({"_shard": key[0], "_epoch": epoch, **marks, **has, **times})
    return rows


def _ended(mode: str, had: Row, epoch: int, *, replaced: bool) -> list[Row]:
    if mode == "history":
        return [{**had, "_epoch_to": epoch, "_valid_to": time_of(epoch)}]
    if mode == "soft_delete":
        return [] if replaced else [{**had, "_epoch": epoch, "_deleted": True}]
    key = dict.fromkeys(had) | {name: had[name] for name in ("_shard", "id")}
    return [had] if replaced else [had, {**key, "_epoch": epoch, "_deleted": True}]


def _lasts(row: Row) -> bool:
    return row["_epoch_to"] is None


def _last_of(rows: list[Row]) -> Callable[[Row], bool]:
    last: dict[tuple[str, int], Row] = {}
    for row in sorted(rows, key=lambda row: row.get("_epoch", 0)):
        last[row["_shard"], row["id"]] = row
    return lambda row: last[row["_shard"], row["id"]] is row and not row["_deleted"]


def must_be(found: list[Row], wanted: list[Row]) -> None:
    """The same rows, whatever order of columns; a column that one side lacks is NULL there."""
    names = sorted({name for row in [*found, *wanted] for name in row})
    assert _alike(found, names) == _alike(wanted, names)


def _alike(rows: list[Row], names: list[str]) -> list[str]:
    values = ([row.get(name) for name in names] for row in rows)
    return sorted(
        repr([one.timestamp() if isinstance(one, datetime) else one for one in row]) for row in values
    )


def must_renew(steps: Steps, *columns: str, then: int) -> None:
    """Copy all tables again, which are exact as of `then`, with what the shards have now. They keep their past."""
    before = {table: plain(steps, table) for table in MODES}
    steps.renew(*PROOF)
    for table in MODES:
        assert plain(steps, table) == before[table], "no reader sees a part of it"
        assert steps.lake(table, "id", *columns) == steps.source(table, "id", *columns)
    settled(steps.feed)
    for table, mode in MODES.items():
        epoch = exact_since(steps, table)
        wanted = expected(mode, before[table], source(steps, table, *columns), epoch)
        assert len(wanted) > len(before[table]) or mode == "soft_delete"
        must_be(plain(steps, table), wanted)
        assert steps.lake(table, "id", *columns) == steps.source(table, "id", *columns)
        old = catchment.read(steps.feed, f"{steps.schema}.{table}", then).arrow().to_pylist()
        assert {(row["_shard"], row["id"]) for row in old} == {
            (shard, id_) for shard in steps.servers for id_ in {*range(1, 21)} - {3, 13}
        }


def stale_in(steps: Steps) -> int:
    """Have the feed read what makes the tables stale, and leave them so; the epoch as of which they stand."""
    steps.set(schema_change="freeze")
    steps.everywhere(*PROOF)
    steps.run()
    assert {one.table.name for one in newest(steps).stale} == set(MODES)
    (then,) = {one.epoch for one in newest(steps).stale}
    with pytest.raises(SinkError, match="stands as of epoch"):
        catchment.read(steps.file, f"{steps.schema}.aged", strict=True)
    assert catchment.read(steps.file, f"{steps.schema}.aged").as_of == then
    settled(steps.feed)
    steps.set(schema_change="evolve")
    return then


def write_more(steps: Steps) -> None:
    """What the feed does not see, or sees in the log of a new copy."""
    for table in MODES:
        steps.everywhere(
            f"UPDATE {table} SET v = 'late' WHERE id IN (15, 4)",
            f"INSERT INTO {table} VALUES (13, 'again', 1), (50, 'new', NULL)",
            f"DELETE FROM {table} WHERE id = 16",
        )


def test_partitions_that_are_dropped(steps: Steps) -> None:
    for table in MODES:
        steps.sql("-80", f"ALTER TABLE {table} DROP PARTITION p0")
    write_more(steps)
    must_renew(steps, "v", "n", then=stale_in(steps))
    for table in MODES:
        steps.everywhere(
            f"UPDATE {table} SET v = 'later' WHERE id = 17", f"DELETE FROM {table} WHERE id = 18"
        )
        steps.must_be_equal(table, "id", "v", "n")
    settled(steps.feed)
    for table in MODES:
        steps.must_be_equal(table, "id", "v", "n")
