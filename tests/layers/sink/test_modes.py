"""Tables that keep deleted rows, every change, or every version of a row; after settles and joins at random."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

import catchment
from catchment.model.epoch import DataFile, Part, TableShape
from catchment.model.errors import SinkError
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.plain.tail import Limits
from catchment.sink.delta.plain.versions_of_rows import may_be_open
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, ORDERS, Key, delta, write
from tests.layers.sink.test_change_data import carried_out, told
from tests.layers.sink.test_settle import some_of
from tests.world.delta_scan import DeltaScan
from tests.world.settled import carry_out

SHARDS = ("s/0", "s/1")
KEYS = 60
NAMES = ["_shard", "_epoch", "_deleted", "id", "sig"]
VECTORS = Form()
Row = tuple[Any, ...]


def time_of(epoch: int | None) -> datetime | None:
    """The second of an epoch."""
    return None if epoch is None else datetime.fromtimestamp(epoch >> 32, UTC)


def version_of(shard: str, epoch: int, key: int, value: str, ended: int | None) -> Row:
    """A row of a table that keeps every version."""
    return (shard, epoch, key, value, ended, time_of(epoch), time_of(ended))


class Kept:
    """A table that is copied while it changes, in a mode. `exact`: the rows of the plain table as of each epoch;
    `states`: those of the source."""

    def __init__(
        self, root: Path, mode: Mode, rng: random.Random, form: Form = VECTORS, shape: TableShape = ORDERS
    ) -> None:
        self.feeder = Feeder(root)
        self.shape = replace(shape, mode=mode)
        self.form, self.rng = form, rng
        self.index: str | None = None
        self.left = [(shard, key) for shard in SHARDS for key in range(KEYS)]
        self.rows: dict[Key, tuple[int, str]] = {}
        self.deleted: dict[Key, tuple[int, str]] = {}
        self.log: list[Row] = []
        self.versions: list[list[Any]] = []
        self.exact: dict[int, list[Row]] = {}
        self.states: dict[int, list[Row]] = {}

    def row(self, key: int, value: str | None) -> Row:
        """The columns of a row; a delete has its key alone."""
        return (key, value)

    def commit(self) -> None:
        """An epoch of chunks and changes."""
        self.feeder.epoch += 1
        epoch, files = self.feeder.epoch, []
        for shard in SHARDS:
            files += self._changed(epoch, shard)
        chunk = [self.left.pop() for _ in range(min(len(self.left), self.rng.choice((0, 0, 9, 25))))]
        if chunk:
            copied = [(shard, epoch, False, self.row(key, f"copied {key}")) for shard, key in sorted(chunk)]
            files.append(write(self.feeder.root, self.shape, Part.BASE, f"{epoch}-b-0", copied))
            self._note(copied)
        self.feeder.commit((self.shape,), *([delta(self.shape, *files)] if files or epoch == 1 else []))
        self._know(epoch)

    def _know(self, epoch: int) -> None:
        """What the source and the plain table have as of an epoch."""
        self.states[epoch] = sorted((s, e, k, v) for (s, k), (e, v) in self.rows.items())
        if self.shape.mode is Mode.APPEND:
            self.exact[epoch] = sorted(self.log, key=repr)
        elif self.shape.mode is Mode.MIRROR:
            self.exact[epoch] = sorted(self.states[epoch], key=repr)
        elif self.shape.mode is Mode.HISTORY:
            self.exact[epoch] = sorted((version_of(*version) for version in self.versions), key=repr)
        else:
            kept = [(s, e, False, k, v) for (s, k), (e, v) in self.rows.items()]
            kept += [(s, e, True, k, v) for (s, k), (e, v) in self.deleted.items()]
            self.exact[epoch] = sorted(kept, key=repr)

    def _changed(self, epoch: int, shard: str) -> list[DataFile]:
        copied = sorted({key for s, key in [*self.rows, *self.deleted] if s == shard})
        touched = self.rng.sample(copied, min(len(copied), self.rng.randrange(8)))
        changes = []
        for key in touched:
            dies = self.rng.random() < 0.5
            changes.append((shard, epoch, dies, self.row(key, None if dies else f"{epoch}")))
        if not changes:
            return []
        self._note(changes)
        name = f"{epoch}-a-{SHARDS.index(shard)}"
        return [write(self.feeder.root, self.shape, Part.CHANGES, name, changes)]

    def _note(self, changes: list[tuple[str, int, bool, Row]]) -> None:
        for shard, epoch, dies, (key, value, *_) in changes:
            self.log.append((shard, epoch, dies, key, value))
            for version in self.versions:
                if (version[0], version[2], version[4]) == (shard, key, None):
                    version[4] = epoch
            if not dies:
                self.versions.append([shard, epoch, key, value, None])
            before = self.rows.pop((shard, key), None)
            if dies and before is not None:
                self.deleted[shard, key] = (epoch, before[1])
            elif not dies:
                self.deleted.pop((shard, key), None)
                self.rows[shard, key] = (epoch, value)

    def settle(self) -> None:
        """What the process beside a run does, in steps of some epochs."""
        limits = Limits(rows=self.rng.choice((5, 1000)))
        root = str(self.feeder.root)
        carry_out(UpkeepOrder(root, FEED, 1, 3600.0, limits=limits, form=self.form, index=self.index))

    @property
    def names(self) -> list[str]:
        """Columns of the plain table that are compared."""
        if self.shape.mode is Mode.MIRROR:
            return ["_shard", "_epoch", "id", "sig"]
        times = ["_epoch_to", "_valid_from", "_valid_to"]
        return ["_shard", "_epoch", "id", "sig", *times] if self.shape.mode is Mode.HISTORY else NAMES

    @property
    def plain(self) -> Path:
        return table_dir(self.feeder.root, self.shape.table)

    def must_be_exact(self, most: int = 8) -> None:
        """At so many versions at most for Polars, at some for DuckDB's delta_scan; and `catchment.read` as of some
        epochs. The newest are among them always."""
        newest = DeltaTable(self.plain).version()
        log, app = DeltaLog(self.plain), f"catchment/{FEED}/{self.shape.table}"
        versions = {}
        for version in some_of(range(newest + 1), most):
            on = log.at(version)
            assert on is not None
            versions[version] = self.exact[on.transactions[app]]
        for version, wanted in versions.items():
            assert (
                sorted(pl.read_delta(str(self.plain), version=version).select(self.names).rows(), key=repr)
                == wanted
            )
        with DeltaScan() as judge:
            for version in some_of(versions, most // 3):
                found = judge.rows(self.plain, self.names, version=version).to_pylist()
                assert sorted((tuple(row.values()) for row in found), key=repr) == versions[version]
        for epoch in some_of(self.states, most // 2):
            self.must_read(epoch, self.states[epoch])

    def must_read(self, epoch: int, wanted: list[Row]) -> None:
        """As of an epoch, unless that is behind the readers' window."""
        try:
            state = catchment.read(self.feeder.root, str(self.shape.table), epoch=epoch)
        except SinkError:
            assert epoch < max(self.states), "the newest epoch can always be read"
            return
        assert sorted(tuple(row.values())[:4] for row in state.arrow().to_pylist()) == wanted
        assert sorted(row[:4] for row in state.duckdb().fetchall()) == wanted


@pytest.mark.parametrize("mode", [Mode.SOFT_DELETE, Mode.APPEND, Mode.HISTORY])
@pytest.mark.parametrize("turns", [9, *(pytest.param(turns, marks=pytest.mark.wide) for turns in (16, 24))])
def test_every_version_keeps_what_it_is_to_keep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, turns: int
) -> None:
    monkeypatch.setattr("catchment.sink.delta.plain.due.FAN", 5 if turns == 9 else 16)
    table = Kept(tmp_path, mode, random.Random(turns))
    for _ in range(turns):
        for _ in range(table.rng.choice((1, 1, 2, 4))):
            table.commit()
        table.settle()
    table.commit()  # waits in the tail
    table.must_be_exact(2 * turns - 10)
    done = {entry["operation"] for entry in DeltaTable(table.plain).history()}
    assert "OPTIMIZE" in done, "files were joined"
    assert table.deleted
    on = DeltaLog(table.plain).newest()
    assert on is not None
    never_asked = [file for file in on.files.values() if not may_be_open(file)]
    assert bool(never_asked) is (mode is Mode.HISTORY)


@pytest.mark.parametrize(
    "form", [Form(changes=True), pytest.param(Form(vectors=False), marks=pytest.mark.wide)], ids=str
)
@pytest.mark.parametrize(
    "mode",
    [*(pytest.param(m, marks=pytest.mark.wide) for m in (Mode.SOFT_DELETE, Mode.APPEND)), Mode.HISTORY],
)
def test_other_forms(tmp_path: Path, mode: Mode, form: Form) -> None:
    table = Kept(tmp_path, mode, random.Random(9), form)
    for _ in range(5):
        table.commit()
        table.commit()
        table.settle()
    table.must_be_exact()
    if form.changes:
        rows: list[Row] = []
        for version in range(DeltaTable(table.plain).version() + 1):
            rows = carried_out(rows, told(table.plain, version))
            exact = pl.read_delta(str(table.plain), version=version).select(table.names).rows()
            assert rows == sorted(exact, key=repr)
        changes = catchment.changes(tmp_path, str(ORDERS.table)).arrow()
        assert {"_deleted", "_epoch_to"} & set(changes.schema.names)


def test_a_row_that_lived_between_two_settles_is_kept(tmp_path: Path) -> None:
    table = Kept(tmp_path, Mode.SOFT_DELETE, random.Random(1))
    feeder, shape = table.feeder, table.shape
    for rows in ([(1, "a")], [(2, "lived")], [(3, "b")]):
        feeder.put(shape, *rows)
    feeder.put(shape, (2, None), deleted=True)
    feeder.put(shape, (9, None), deleted=True)  # never was there
    table.settle()
    feeder.put(shape, (3, None), deleted=True)
    table.settle()
    feeder.put(shape, (3, None), deleted=True)  # once more: it stays as it is
    feeder.put(shape, (2, "again"))
    table.settle()
    found = sorted(pl.read_delta(str(table.plain)).select(NAMES).rows())
    assert found == [
        ("s/0", 1, False, 1, "a"),
        ("s/0", 6, True, 3, "b"),
        ("s/0", 8, False, 2, "again"),
    ]
    rows = catchment.read(tmp_path, str(shape.table)).arrow().to_pylist()
    assert sorted((row["id"], row["sig"]) for row in rows) == [(1, "a"), (2, "again")]
