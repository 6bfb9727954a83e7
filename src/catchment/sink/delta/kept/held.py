"""Which files the kept versions of a plain table have, behind whom the window has gone.

A function of their checkpoints, noted beside the tails so that a clean need not read each of them. The note may be
dropped at any time: the next clean makes it again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.files import exists, lake_file, replace_bytes
from catchment.sink.delta.kept.retained import Carried
from catchment.sink.delta.layout import held_file
from catchment.sink.storage.choice import storage_of


class Run(msgspec.Struct, frozen=True, array_like=True):
    """A file is in each kept version from `first` to `last`."""

    first: int
    last: int


class Held(msgspec.Struct, frozen=True):
    """Kept versions in order, and their files. `until`: the newest kept epoch that is among them."""

    until: int = 0
    versions: tuple[Carried, ...] = ()
    files: dict[str, tuple[Run, ...]] = {}

    def with_version(self, version: Carried, until: int, names: Iterable[str]) -> "Held":
        """Together with a later version, which has these files."""
        before = self.versions[-1].version if self.versions else -1
        files = dict(self.files)
        for name in names:
            runs = files.get(name, ())
            goes_on = runs and runs[-1].last == before
            first = runs[-1].first if goes_on else version.version
            files[name] = (*(runs[:-1] if goes_on else runs), Run(first, version.version))
        return Held(until, (*self.versions, version), files)

    def thinned(self, epochs: Sequence[int]) -> "Held":
        """Only what some kept epochs need, those up to `until`."""
        needed: set[int] = set()
        for epoch in epochs:
            place = bisect_right(self.versions, epoch, key=lambda one: one.epoch)
            if place and epoch <= self.until:
                needed.add(self.versions[place - 1].version)
        if len(needed) == len(self.versions):
            return self
        versions = tuple(one for one in self.versions if one.version in needed)
        numbers = sorted(needed)
        files = {name: _cut(runs, numbers) for name, runs in self.files.items()}
        return Held(self.until, versions, {name: runs for name, runs in files.items() if runs})


def _cut(runs: tuple[Run, ...], versions: Sequence[int]) -> tuple[Run, ...]:
    """Runs over some of their versions alone."""
    places = ((bisect_left(versions, run.first), bisect_right(versions, run.last)) for run in runs)
    return tuple(Run(versions[begin], versions[end - 1]) for begin, end in places if begin < end)


def read_held(root: Location, table: TableId) -> Held:
    """The note of a table; an empty one where none can be read. Raises SinkError where the lake cannot."""
    path = held_file(root, table)
    try:
        with lake_file(path):
            return msgspec.json.decode(storage_of(path).read(path), type=Held) if exists(path) else Held()
    except msgspec.DecodeError:
        return Held()


def write_held(root: Location, table: TableId, held: Held) -> None:
    """Replace the note of a table. Raises SinkError."""
    replace_bytes(held_file(root, table), msgspec.json.encode(held))
