"""What a table that keeps its past must have once a new copy of it is compared with what stands."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import polars as pl

import catchment
from catchment.model.epoch import Manifest
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir
from tests.layers.sink.test_modes import time_of
from tests.promises.exact.steps import Steps

Row = dict[str, Any]


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
    """What a table has whose rows of before become those of now with an epoch, and that keeps its past. Those
    that the source has no longer are out of sight."""
    shown = {name for row in now.values() for name in row}
    before = [{name: row[name] for name in row if name.startswith("_") or name in shown} for row in before]
    ways = {"history": _lasts, "append": last_of(before), "soft_delete": _is_there}
    of_now = ways[mode]
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
        if had is not None and has is not None and all(had.get(name) == has[name] for name in has):
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


def _is_there(row: Row) -> bool:
    return not row["_deleted"]


def last_of(rows: list[Row]) -> Callable[[Row], bool]:
    last: dict[tuple[str, int], Row] = {}
    for row in sorted(rows, key=lambda row: row.get("_epoch", 0)):
        last[row["_shard"], row["id"]] = row
    return lambda row: last[row["_shard"], row["id"]] is row and not row["_deleted"]


def must_be(found: list[Row], wanted: list[Row]) -> None:
    """The same rows, whatever order of columns; a column that one side lacks is NULL there."""
    names = sorted({name for row in [*found, *wanted] for name in row})
    assert alike(found, names) == alike(wanted, names)


def alike(rows: list[Row], names: list[str]) -> list[str]:
    values = ([row.get(name) for name in names] for row in rows)
    return sorted(
        repr([one.timestamp() if isinstance(one, datetime) else one for one in row]) for row in values
    )


def must_tell(steps: Steps, table: str, then: int, before: list[Row]) -> None:
    """The changes of a plain table since an epoch lead to what it is from what it had before, and none is told twice.
    Columns that it did not have then are left out."""
    names = [*before[0]]
    rows = Counter(alike(before, names))
    for change in catchment.changes(steps.file, f"{steps.schema}.{table}", since=then).arrow().to_pylist():
        (row,) = alike([change], names)
        rows[row] += -1 if change["_change_type"] in ("delete", "update_preimage") else 1
    assert min(rows.values()) >= 0, rows
    assert sorted(rows.elements()) == alike(plain(steps, table), names)
