"""Tables that keep their past and are copied again, at random: only what differs is written, and the past stays."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

import catchment
from catchment.model.epoch import DataFile, Part, TableShape
from catchment.model.errors import SinkError
from catchment.model.renewal import Renewal
from catchment.model.stale import Stale
from catchment.model.treatment import Mode
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.plain.shape import Form
from tests.layers.sink.model import Key, delta, write
from tests.layers.sink.test_change_data import carried_out, told
from tests.layers.sink.test_modes import KEYS, SHARDS, Kept, Row

KEEPING = [Mode.SOFT_DELETE, Mode.APPEND, Mode.HISTORY]


class Renewed(Kept):
    """A table that now and then becomes stale, changes in no log, and is copied again. `renewals`: how often."""

    renewals = 0

    def renew(self, *, settles: float = 0.5) -> None:
        """Become stale, be copied again while rows change, and be exact again."""
        then = self.feeder.epoch
        stale = Stale(self.shape.table, then, 0, SHARDS, "changed in no log")
        self.feeder.epoch += 1
        self.feeder.commit((), stale=(stale,))
        source = self._changed_unseen()
        self.feeder.epoch += 1
        shape = replace(self.shape, generation=self.feeder.epoch, renews=Renewal(then))
        self.feeder.commit((shape,), delta(shape), stale=(stale,))
        left = self.rng.sample(sorted(source), len(source))
        while shape.renews == Renewal(then):
            chunk = [left.pop() for _ in range(min(len(left), self.rng.choice((0, 7, 40))))]
            shape = self._copied(shape, source, chunk, left, stale)
            if self.rng.random() < settles:
                self.settle()
        self._differ(source, self.feeder.epoch)
        self.left, self.shape, self.renewals = [], shape, self.renewals + 1
        self._know(self.feeder.epoch)

    def _changed_unseen(self) -> dict[Key, str]:
        """What the source has, when no log has told how it came to that."""
        source = {key: value for key, (_, value) in self.rows.items()}
        for shard in SHARDS:
            for key in range(KEYS):
                dice = self.rng.random()
                if dice < 0.1:
                    source.pop((shard, key), None)
                elif dice < 0.25:
                    source[shard, key] = f"unseen {self.feeder.epoch}"
        return source

    def _copied(
        self, shape: TableShape, source: dict[Key, str], chunk: list[Key], left: list[Key], stale: Stale
    ) -> TableShape:
        """An epoch of the new copy: a chunk, and changes of what is copied; the shape as of it."""
        self.feeder.epoch += 1
        epoch, files = self.feeder.epoch, list[DataFile]()
        rows = [(shard, epoch, False, self.row(key, source[shard, key])) for shard, key in sorted(chunk)]
        if rows:
            part = self.rng.choice((Part.BASE, Part.BASE, Part.CHANGES))
            files.append(write(self.feeder.root, shape, part, f"{epoch}-c-0", rows))
        known = {(shard, key) for shard in SHARDS for key in range(KEYS)} - {*left, *chunk}
        changes = []
        for shard, key in sorted(self.rng.sample(sorted(known), min(len(known), self.rng.randrange(9)))):
            dies = self.rng.random() < 0.5
            changes.append((shard, epoch, dies, self.row(key, None if dies else f"copied {epoch}")))
            source.pop((shard, key), None)
            if not dies:
                source[shard, key] = f"copied {epoch}"
        if changes:
            files.append(write(self.feeder.root, shape, Part.CHANGES, f"{epoch}-a-0", changes))
        done = not left
        if done:
            assert shape.renews is not None
            shape = replace(shape, renews=replace(shape.renews, at=epoch))
        self.feeder.commit((shape,), delta(shape, *files), stale=() if done else (stale,))
        return shape

    def _differ(self, source: dict[Key, str], epoch: int) -> None:
        """What the past has more by that: the differences, as if they were changes of this epoch."""
        had = {key: value for key, (_, value) in self.rows.items()}
        for place in sorted(had.keys() | source.keys()):
            shard, key = place
            if place not in source:
                self._note([(shard, epoch, True, self.row(key, None))])
            elif had.get(place) != source[place]:
                self._note([(shard, epoch, False, self.row(key, source[place]))])

    def must_read(self, epoch: int, wanted: list[Row]) -> None:
        """As of an epoch. Before it is settled, rows of a new copy have its epochs."""
        try:
            state = catchment.read(self.feeder.root, str(self.shape.table), epoch=epoch)
        except SinkError:
            assert epoch < max(self.states), "the newest epoch can always be read"
            return
        rows = [(row[0], *row[2:4]) for row in wanted]
        found = [tuple(row.values()) for row in state.arrow().to_pylist()]
        assert sorted((row[0], *row[2:4]) for row in found) == sorted(rows)
        assert sorted((row[0], *row[2:4]) for row in state.duckdb().fetchall()) == sorted(rows)


def turned(table: Renewed, turns: int) -> Renewed:
    """Epochs, settles, and now and then a new copy; the last two are never settled before the next."""
    for turn in range(turns):
        for _ in range(table.rng.choice((1, 1, 3))):
            table.commit()
        if turn % 3 == 1:
            table.renew()
        if table.rng.random() < 0.7:
            table.settle()
    table.renew(settles=0)
    table.renew(settles=0)
    table.commit()
    table.must_read(table.feeder.epoch, table.states[table.feeder.epoch])
    table.settle()
    table.commit()
    return table


@pytest.mark.parametrize(
    ("mode", "turns"),
    [
        (Mode.HISTORY, 2),
        *(pytest.param(mode, turns, marks=pytest.mark.wide) for mode in KEEPING for turns in (3, 6, 9)),
    ],
)
def test_the_past_stays(tmp_path: Path, mode: Mode, turns: int) -> None:
    table = turned(Renewed(tmp_path, mode, random.Random(f"{mode} {turns}")), turns)
    table.must_be_exact()
    assert table.renewals >= 3
    history = [entry["operation"] for entry in DeltaTable(table.plain).history()]
    assert "WRITE" not in history, "nothing was replaced"


@pytest.mark.wide
@pytest.mark.parametrize("form", [Form(vectors=False), Form(changes=True)], ids=str)
@pytest.mark.parametrize("mode", KEEPING)
def test_other_forms(tmp_path: Path, mode: Mode, form: Form) -> None:
    table = turned(Renewed(tmp_path, mode, random.Random(3), form), 5)
    table.must_be_exact()
    if form.changes:
        rows: list[Row] = []
        for version in range(DeltaTable(table.plain).version() + 1):
            rows = carried_out(rows, told(table.plain, version))
            exact = pl.read_delta(str(table.plain), version=version).select(table.names).rows()
            assert rows == sorted(exact, key=repr), version


class Died(Exception):
    """What ends a settle at a place where it might be killed."""


@pytest.mark.parametrize(
    "mode", [Mode.HISTORY, *(pytest.param(m, marks=pytest.mark.wide) for m in KEEPING[:2])]
)
def test_a_settle_that_dies_in_front_of_a_commit_or_behind_it(
    tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Renewed(tmp_path, mode, random.Random(8))
    for _ in range(4):
        table.commit()
    table.renew(settles=0)  # of the copy before nothing is settled
    table.commit()
    put, deaths = DeltaLog.put, 0

    def dying(turn: int) -> Callable[..., Snapshot | None]:
        left = [turn]

        def die(log: DeltaLog, *told: Any) -> Snapshot | None:
            left[0] -= 1
            if left[0] == 0 and turn % 2:
                raise Died
            after = put(log, *told)
            if left[0] == 0:
                raise Died
            return after

        return die

    for turn in range(1, 40):
        monkeypatch.setattr(DeltaLog, "put", dying(turn))
        try:
            table.settle()
            break
        except Died:
            deaths += 1
    monkeypatch.setattr(DeltaLog, "put", put)
    assert deaths >= 4
    table.settle()
    table.must_be_exact()
