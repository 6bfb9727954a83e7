"""What an epoch costs does not grow with tables of which it changes nothing: the values that tell of them stay the same
objects, and nobody goes through them. Steps of the interpreter are counted (test_growth.py)."""

import dataclasses
from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from catchment.epoch.gather import gather, manifest
from catchment.model.epoch import DataFile, Manifest, Part
from catchment.model.records import encoded
from catchment.model.shard import Copies
from catchment.schema.events import SchemaEvents, stops
from tests.layers.epoch.test_growth import Epoch, steps
from tests.layers.schema.test_events import ddl

SHARDS, FEW, MANY = 4, 8, 128
# The same steps, and some for numbers with more digits.
TIMES_MAX = 1.05


class Quiet(Epoch):
    """An epoch of a feed whose rows are copied, in which one table changes on every shard."""

    def __init__(self, tables: int) -> None:
        super().__init__(SHARDS, tables)
        done = Copies(replace(copy, done=True) for copy in self.previous.cut.shards["s0000"].copies)
        states = {name: replace(state, copies=done) for name, state in self.previous.cut.shards.items()}
        self.previous = replace(self.previous, cut=replace(self.previous.cut, shards=states))
        self.groups, self.copies, self.plan = [], {}, replace(self.plan, chunks=())
        for name, one in self.segments.items():
            self.segments[name] = dataclasses.replace(one, outputs=one.outputs[:1], met=one.met[:1])
        self.base = encoded(self.previous, None)[1]
        # What is found once of these values is found: so it is for every epoch of a run but the first.
        self.made()
        self.handed_out()

    def written(self) -> None:
        """As a state store writes it."""
        encoded(self.made(), self.base)

    def made_behind(self) -> Manifest:
        """The epoch behind that which `made` gives."""
        self.previous = self.made()
        return self.made()


def test_with_tables_that_stay_as_they_were() -> None:
    work: dict[str, Callable[[Quiet], object]] = {
        "tasks": Quiet.handed_out,
        "manifest": Quiet.made_behind,
        "record": Quiet.written,
        "copies": lambda epoch: (epoch.previous.cut.idle, epoch.previous.cut.copied),
    }
    few, many = Quiet(FEW), Quiet(MANY)
    for name, act in work.items():
        took = [steps(partial(act, of)) for of in (few, many)]
        assert took[1] <= TIMES_MAX * took[0], (name, took)


def test_what_stays_is_the_same_object() -> None:
    epoch = Quiet(FEW)
    before, after = epoch.previous, epoch.made()
    assert after.shapes is before.shapes
    assert after.followed is before.followed
    assert all(state.copies is before.cut.shards[shard].copies for shard, state in after.cut.shards.items())
    assert [delta.shape for delta in after.deltas] == []
    first = before.shapes[0].table
    gathered = gather(before, epoch.plan, epoch.segments, {}, {})
    changed = manifest(before, epoch.plan, gathered, {first: (DataFile("f", 1, 1, Part.CHANGES, "{}"),)}, {})
    assert [delta.shape for delta in changed.deltas] == [before.shapes[0]]


def _judged(events: SchemaEvents, statement: str) -> None:
    stops(events.next(ddl(60, statement)), events.chosen)


@pytest.mark.parametrize(
    "statement", ["DROP TABLE t000", "DROP DATABASE other", "ALTER TABLE t000 ENGINE=Aria"]
)
def test_with_statements(statement: str) -> None:
    """A statement is judged by the tables that it names."""
    found = []
    for tables in (FEW, MANY):
        names = [shape.table for shape in Quiet(tables).previous.shapes]
        events = SchemaEvents(names, dict.fromkeys(names, ("id",)))
        events.next(ddl(4, statement))
        found.append(steps(partial(_judged, events, statement)))
    assert found[1] <= TIMES_MAX * found[0], found
