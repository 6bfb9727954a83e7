"""Tables of which one shard gets other rows now and then, at random: a settle replaces those, and the others' stay."""

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from catchment.model.epoch import DataFile, Part
from catchment.model.renewal import Replacement
from catchment.model.stale import Stale
from catchment.model.treatment import Mode
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.generation import generation
from catchment.sink.delta.plain.shape import Form
from tests.layers.sink.model import FEED, delta, write
from tests.layers.sink.test_change_data import carried_out, told
from tests.layers.sink.test_modes import KEYS, SHARDS, Kept, Row


class Replaced(Kept):
    """A table that is copied, and then has one shard after another replaced. `replacements`: how often."""

    replacements = 0

    def replace_one(self) -> None:
        """A tool swaps the table of a shard: it is stale until a settle, in the midst of other changes."""
        while self.left:
            self.commit()
        shard, then = self.rng.choice(SHARDS), self.feeder.epoch
        stale = Stale(self.shape.table, then, 0, SHARDS, "renamed")
        self.feeder.epoch += 1
        self.feeder.commit((), stale=(stale,))
        self.states[self.feeder.epoch] = self.states[then]
        self.feeder.epoch += 1
        self.shape = replace(self.shape, generation=self.feeder.epoch, replaces=Replacement((shard,), then))
        shadow = self._shadow(shard, then)
        waits = replace(stale, settles=True)
        self._commit_stale(then, waits, *shadow)
        for _ in range(self.rng.randrange(3)):
            self.feeder.epoch += 1
            self._commit_stale(then, waits)
            if self.rng.random() < 0.3:
                self.settle()
        self.settle()
        plain = DeltaLog(self.plain).newest()
        assert generation(plain, FEED, self.shape.table) == self.shape.generation
        self.feeder.epoch += 1
        self.feeder.commit((self.shape,))
        self._know(self.feeder.epoch)
        self.replacements += 1

    def _commit_stale(self, then: int, waits: Stale, *files: DataFile) -> None:
        epoch = self.feeder.epoch
        changed = [file for shard in SHARDS for file in self._changed(epoch, shard)]
        self.feeder.commit((self.shape,), delta(self.shape, *files, *changed), stale=(waits,))
        self._know(epoch)
        self.states[epoch] = self.states[then]

    def _shadow(self, shard: str, then: int) -> list[DataFile]:
        """What the tail of the shadow table has: rows that were written, again and again, and deleted."""
        files = []
        self.rows = {place: row for place, row in self.rows.items() if place[0] != shard}
        for epoch in range(max(1, then - 3), self.feeder.epoch):
            keys = sorted(self.rng.sample(range(KEYS), self.rng.choice((0, 3, 40))))
            dies = {key: self.rng.random() < 0.2 for key in keys}
            rows = [
                (shard, epoch, dies[key], self.row(key, None if dies[key] else f"shadow {epoch}"))
                for key in keys
            ]
            if rows:
                files.append(write(self.feeder.root, self.shape, Part.CHANGES, f"{epoch}-s-0", rows))
            for key in keys:
                self.rows.pop((shard, key), None)
                if not dies[key]:
                    self.rows[shard, key] = (epoch, f"shadow {epoch}")
        return files


WIDE = pytest.mark.wide


@pytest.mark.parametrize(
    ("form", "turns"),
    [
        (Form(changes=True), 4),
        *(pytest.param(form, 7, marks=WIDE) for form in (Form(), Form(vectors=False), Form(changes=True))),
    ],
    ids=str,
)
def test_every_version_is_exact(tmp_path: Path, form: Form, turns: int) -> None:
    table = Replaced(tmp_path, Mode.MIRROR, random.Random(f"{form} {turns}"), form)
    table.commit()
    table.feeder.epoch += 1 << 62  # as numbers of epochs are
    for turn in range(turns):
        for _ in range(table.rng.choice((1, 1, 3))):
            table.commit()
        if table.rng.random() < 0.6:
            table.settle()
        if turn % 2:
            table.replace_one()
    table.commit()
    table.must_be_exact(4 * turns)
    assert table.replacements == turns // 2
    if form.changes:
        rows: list[Row] = []
        for version in range(DeltaTable(table.plain).version() + 1):
            changed: list[dict[str, Any]] = told(table.plain, version)
            rows = carried_out(rows, changed)
            exact = pl.read_delta(str(table.plain), version=version).select(table.names).rows()
            assert rows == sorted(exact, key=repr), version
