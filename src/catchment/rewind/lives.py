"""The rows of one child through a stretch of log: what each had from where to where, and what events do to that.

Places are even numbers in the order of the log. A life that an event has begun starts just in front of the event's
place. So what the same parent does by another key meets it, too. Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.foreign_key import ForeignKey
from catchment.model.image import DELETED, SIDE
from catchment.model.table import TableId
from catchment.rewind.parents import Events, Places, Side, all_valid
from catchment.rewind.states import AFTER, BEFORE
from catchment.wire.keys import keys

_BEGINNING = -2  # in front of every place
END = _NEVER = 1 << 33  # behind every place


class Unfollowed(ValueError):
    """What a foreign key did to rows of its child cannot be told. `child`: of it."""

    def __init__(self, child: TableId, why: str) -> None:
        super().__init__(why)
        self.child = child


# The rows of a table in the lake that have one of these values in the columns of a foreign key.
Lake = Callable[[ForeignKey, pa.Table], pa.Table]


@dataclass(frozen=True)
class Fates:
    """What became of rows by foreign keys alone, behind all that the log says of them. `rows`: their keys, the columns
    of foreign keys, and DELETED. `unlogged`: those of them as the lake has them of which the log says nothing."""

    key: tuple[str, ...]
    rows: pa.Table
    unlogged: pa.Table

    def applied(self, states: pa.Table) -> pa.Table:
        """States, of which some have these fates."""
        at = keys.KeySet(keys.encode(self.rows, self.key)).find(keys.encode(states, self.key))
        met = pa.array(at >= 0)
        taken = self.rows.take(pa.array(np.maximum(at, 0)))
        for name in set(self.rows.schema.names) - set(self.key):
            column = states.schema.get_field_index(name)
            values = taken.column(name).cast(states.schema.field(column).type)
            states = states.set_column(column, name, pc.if_else(met, values, states.column(column)))
        return states


@dataclass(frozen=True)
class _Lives:
    """Rows of a child from `starts` to `ends`; `by`: the number of the key whose event began each, -1 for none."""

    rows: pa.Table
    starts: Places
    ends: Places
    by: Places

    def take(self, chosen: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> "_Lives":
        at = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return _Lives(self.rows.take(pa.array(at)), self.starts[at], self.ends[at], self.by[at])


@dataclass(frozen=True)
class Changes:
    """Rows that a foreign key has ended or changed: before, after, where, and whether they ended. `first`: those that
    were as the lake has them until then."""

    before: pa.Table
    after: pa.Table
    places: Places
    ended: npt.NDArray[np.bool_]
    first: npt.NDArray[np.bool_]


@dataclass
class Child:
    """The lives of one child's rows: those that the log tells, and those that the lake has as far as events ask.

    `selected`: the lake has the rows as they were at some moment in front of this place. `carried`: columns that lives
    have beside those that decide. `kept`: rows of the lake, whole. `changes`: what events did to lives, of the newest
    round.
    """

    table: TableId
    key: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]
    side: Side | None
    lake: Lake
    selected: int = 0
    carried: tuple[str, ...] = ()
    kept: pa.Table | None = None
    changes: Changes | None = None
    _asked: dict[int, keys.KeySet] = field(default_factory=dict)
    _final: _Lives | None = None
    _gone: list[_Lives] = field(default_factory=list)

    def meet(self, events: Mapping[int, Events]) -> Changes | None:
        """What events do to the lives; None where they meet none."""
        mine = {
            number: found
            for number, found in events.items()
            if self.foreign_keys[number].child == self.table and len(found.places)
        }
        self._final, self._gone, self.changes = None, [], None
        if not mine:
            return None
        for number, found in mine.items():
            self._ask(number, found)
        lives, changes, final = self._begun(), [], []
        indexed = {number: _Index(self.foreign_keys[number], found) for number, found in mine.items()}
        while lives is not None and lives.rows.num_rows:
            lives, rest, made = self._step(lives, indexed)
            final.append(rest)
            changes += made
        self._final, self.changes = _joined(final), _all(changes)
        return self.changes

    def fates(self) -> Fates | None:
        """What became of rows that the log tells nothing of any more."""
        found = (
            []
            if self._final is None
            else [self._final.take((self._final.ends == _NEVER) & (self._final.by >= 0))]
        )
        rows = [one.rows.append_column(DELETED, pa.array(np.zeros(one.rows.num_rows, bool))) for one in found]
        for gone in self._gone:
            last = gone.take(gone.ends == _NEVER)
            rows.append(last.rows.append_column(DELETED, pa.array(np.ones(last.rows.num_rows, bool))))
        whole = pa.concat_tables(rows) if rows else None
        if whole is None or whole.num_rows == 0:
            return None
        mine = [name for key in self.foreign_keys if key.child == self.table for name in key.columns]
        told = whole.select(list(dict.fromkeys([*self.key, *mine, DELETED])))
        return Fates(self.key, told, self._unlogged(told))

    def _unlogged(self, told: pa.Table) -> pa.Table:
        if self.kept is None:
            return told.slice(0, 0)
        there = keys.encode(self.kept, self.key)
        met = keys.KeySet(keys.encode(told, self.key)).contains(there)
        if self.side is not None:
            met &= ~keys.KeySet(keys.encode(self.side.images, self.key)).contains(there)
        rows = self.kept.filter(pa.array(met))
        return rows.append_column(DELETED, pa.array(np.zeros(rows.num_rows, bool)))

    def _ask(self, number: int, events: Events) -> None:
        """Have the rows of the lake that events may meet."""
        key = self.foreign_keys[number]
        values = events.old.take(pa.array(keys.first_of_each(keys.encode(events.old, key.columns))))
        if number in self._asked:
            values = values.filter(pa.array(~self._asked[number].contains(keys.encode(values, key.columns))))
        if values.num_rows == 0:
            return
        rows = self.lake(key, values)
        if self.kept is not None:
            known = keys.KeySet(keys.encode(self.kept, self.key))
            rows = rows.filter(pa.array(~known.contains(keys.encode(rows, self.key))))
            rows = pa.concat_tables([self.kept, rows])
        self.kept = rows
        self._asked[number] = keys.KeySet(keys.encode(events.old, key.columns))

    def _begun(self) -> _Lives | None:
        """The lives as the lake and the log tell them."""
        found = []
        columns = self._columns
        if self.kept is not None:
            ends, had = self._first_images(self.kept)
            starts = np.full(len(ends), _BEGINNING, np.int64)
            lives = _Lives(self.kept.select(columns), starts, ends, np.full(len(ends), -1, np.int64))
            # No event had ended a row that its first image shows, and the SELECT may have shown it after that image.
            found.append(lives.take(~(had & (ends < self.selected))))
        if self.side is not None and self.side.images.num_rows:
            after = pc.equal(self.side.images.column(SIDE), AFTER).to_numpy()
            rows = self.side.images.select(columns).filter(pa.array(after))
            starts, ends = self.side.places[after], _next_of_key(self.side)[after]
            found.append(_Lives(rows, starts, ends, np.full(len(ends), -1, np.int64)))
        return _joined(found)

    def _first_images(self, rows: pa.Table) -> tuple[Places, npt.NDArray[np.bool_]]:
        """The place of the first image of each row, behind all where there is none; and whether it shows the row as
        it was before."""
        ends, had = np.full(rows.num_rows, _NEVER, np.int64), np.zeros(rows.num_rows, bool)
        if self.side is None or not self.side.images.num_rows:
            return ends, had
        first = keys.first_of_each(keys.encode(self.side.images, self.key))
        images = self.side.images.take(pa.array(first))
        at = keys.KeySet(keys.encode(images, self.key)).find(keys.encode(rows, self.key))
        met, which = at >= 0, np.maximum(at, 0)
        before = pc.equal(images.column(SIDE), BEFORE).to_numpy()
        return np.where(met, self.side.places[first][which], _NEVER), met & before[which]

    @property
    def _columns(self) -> list[str]:
        """Those that decide, of its key, of its foreign keys, and those that others refer to; and those carried."""
        mine = [name for key in self.foreign_keys if key.child == self.table for name in key.columns]
        its = [name for key in self.foreign_keys if key.parent == self.table for name in key.referenced]
        return list(dict.fromkeys([*self.key, *mine, *its, *self.carried]))

    def _step(
        self, lives: _Lives, indexed: Mapping[int, "_Index"]
    ) -> tuple[_Lives | None, _Lives, list[Changes]]:
        """The lives that go on with another key, those that no event meets any more, and what was changed."""
        count = lives.rows.num_rows
        first, number, event = np.full(count, _NEVER, np.int64), np.full(count, -1), np.full(count, -1)
        for key_number, index in indexed.items():
            at, places = index.first(lives, key_number)
            sooner = places < first
            first = np.where(sooner, places, first)
            number, event = np.where(sooner, key_number, number), np.where(sooner, at, event)
        going_on: list[_Lives] = []
        changes: list[Changes] = []
        for key_number, index in indexed.items():
            hit = np.flatnonzero(number == key_number)
            if len(hit):
                met, which, places = lives.take(hit), event[hit], first[hit]
                ended = index.events.ends[which]
                self._gone.append(met.take(ended))
                after = self._with(met.rows, index, which)
                changes.append(Changes(met.rows, after, places, ended, met.starts == _BEGINNING))
                by = np.full(len(hit), key_number, np.int64)
                going_on.append(_Lives(after, places - 1, met.ends, by).take(~ended))
        return _joined(going_on), lives.take(number < 0), changes

    def _with(self, rows: pa.Table, index: "_Index", which: npt.NDArray[np.int64]) -> pa.Table:
        """Rows with the values that events give the columns of their key."""
        new = index.events.new.take(pa.array(which))
        changed = ~index.events.ends[which]
        if changed.any() and set(index.key.columns) & set(self.key):
            raise Unfollowed(self.table, f"the {index.key} changed its primary key")
        for name in index.key.columns:
            at = rows.schema.get_field_index(name)
            values = pc.if_else(
                pa.array(changed), new.column(name).cast(rows.schema.field(at).type), rows.column(at)
            )
            rows = rows.set_column(at, rows.schema.field(at), values)
        return rows


class _Index:
    """The events of one key by their values, in order of their places."""

    def __init__(self, key: ForeignKey, events: Events) -> None:
        self.key, self.events = key, events
        encoded = keys.encode(events.old, key.columns)
        self._values = keys.KeySet(encoded)
        values = self._values.find(encoded)
        self._order = np.lexsort((events.places, values))
        self._sorted = _joint(values[self._order], events.places[self._order])

    def first(self, lives: _Lives, number: int) -> tuple[npt.NDArray[np.int64], Places]:
        """The first event that each life meets, and its place; _NEVER where it meets none."""
        found, places = np.full(len(lives.starts), -1, np.int64), np.full(len(lives.starts), _NEVER, np.int64)
        asked = np.flatnonzero(all_valid(lives.rows.select(self.key.columns)))
        if not len(asked):
            return found, places
        values = self._values.find(keys.encode(lives.rows.take(pa.array(asked)), self.key.columns))
        asked, values = asked[values >= 0], values[values >= 0]
        # A life that this key itself has begun does not meet the same place once more.
        starts = lives.starts[asked] + (lives.by[asked] == number)
        at = np.searchsorted(self._sorted, _joint(values, starts), side="right")
        here = at < len(self._sorted)
        asked, values, at = asked[here], values[here], at[here]
        event = self._order[at]
        place = self.events.places[event]
        met = (self._sorted[at] == _joint(values, place)) & (place < lives.ends[asked])
        found[asked[met]], places[asked[met]] = event[met], place[met]
        return found, places


def _joint(values: npt.NDArray[np.int64], places: Places) -> npt.NDArray[np.int64]:
    """Numbers in the order of values, then of places."""
    return (values.astype(np.int64) << 34) + (places + 2)


def _next_of_key(side: Side) -> Places:
    """The place of the next image of the same key, for each image."""
    encoded = keys.encode(side.images, side.key)
    of = keys.KeySet(encoded).find(encoded)
    order = np.lexsort((side.places, of))
    following = np.full(len(order), _NEVER, np.int64)
    same = of[order][1:] == of[order][:-1]
    following[:-1][same] = side.places[order][1:][same]
    found = np.empty(len(order), np.int64)
    found[order] = following
    return found


def _joined(lives: Iterable[_Lives]) -> _Lives | None:
    found = [one for one in lives if one.rows.num_rows]
    if not found:
        return None
    rows = pa.concat_tables([one.rows.cast(found[0].rows.schema) for one in found])
    parts = ([getattr(one, name) for one in found] for name in ("starts", "ends", "by"))
    return _Lives(rows, *(np.concatenate(part) for part in parts))


def _all(changes: Sequence[Changes]) -> Changes | None:
    if not changes:
        return None
    return Changes(
        pa.concat_tables([one.before for one in changes]),
        pa.concat_tables([one.after for one in changes]),
        np.concatenate([one.places for one in changes]),
        np.concatenate([one.ended for one in changes]),
        np.concatenate([one.first for one in changes]),
    )
