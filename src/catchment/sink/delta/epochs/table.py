"""The epochs table: one row per committed epoch, from which readers start (DESIGN 5).

Together with the lake tables it holds all that the state store needs to be rebuilt. Every row is written
once, as a file of its own; `compact` brings small files together, so that the list of files stays short. `drop` takes
out old rows that nobody asks for.
"""

import math
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from catchment import world
from catchment.model.epoch import Commit, EpochRow, Manifest
from catchment.model.errors import LeaseLost
from catchment.model.location import Location
from catchment.model.records import link_of
from catchment.sink.delta.epochs.rows import NAME, SCHEMA, Record, RowBase, RowReader, encoded_row
from catchment.sink.delta.files import lake_parquet, read_rows, write_parquet
from catchment.sink.delta.layout import epochs_dir, fence_app
from catchment.sink.delta.log.actions import Action, Add, Txn, commit_info
from catchment.sink.delta.log.checkpoint import checkpoint
from catchment.sink.delta.log.commit import commit, create_table, fenced, remarked
from catchment.sink.delta.log.condemned import condemned
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile, Snapshot
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.statistics import delta_stats

# So many files of up to 31 rows become one, so many of up to 1,023 become one, and so on; 32,768 rows are enough.
_LEVEL_FILES_MIN = 32
_LEVELS = 3
_BATCH_ROWS = 256
_RUNNER_BITS = 62
_LAST_EPOCH = (1 << 63) - 1

_Result = TypeVar("_Result")


class EpochsTable:
    """The epochs of one feed in a lake."""

    def __init__(self, root: Location, feed: str) -> None:
        self.feed = feed
        self._directory = epochs_dir(root)
        self._log = DeltaLog(self._directory)
        self._base: RowBase | None = None
        self._old: dict[str, list[int]] = {}  # the feed's epochs in files of old ones
        self._bases: dict[int, int] = {}  # on which epochs rows of old ones build

    def append(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """Make an epoch visible to readers, once. Raises LeaseLost when a later runner has written.

        The first row that an object appends is whole; later ones build on it for a while.
        """
        row, base = encoded_row(EpochRow(manifest, commit, fence), self._base)
        file: dict[
            int, Add
        ] = {}  # by what the log said as it was begun: the cleaner may have taken an earlier one

        def attempt(on: Snapshot) -> RowBase | bool | None:
            must_lead(on, self.feed, fence, NAME)
            if on.transactions.get(self._app, 0) >= manifest.epoch:
                self._log.flush(on.version)  # its runner may have died before it did
                return False
            said = condemned(on)
            if said not in file:
                file[said] = self._write([row])
            return base if self._put(on, [file[said]], fence, Txn(self._app, manifest.epoch)) else None

        written = self._commit(attempt)
        # Nobody knows who wrote a row that stood already, so nothing may build on it.
        self._base = written if isinstance(written, RowBase) else None

    def take_over(self, fence: int) -> None:
        """Carry the fence of a new runner, so that an older one cannot add an epoch from now on.

        Raises LeaseLost when another runner did so under the same fence: a state store that was lost gives one twice.
        """
        ours = secrets.randbits(_RUNNER_BITS)

        def attempt(on: Snapshot) -> bool | None:
            must_lead(on, self.feed, fence, NAME)
            runner = on.transactions.get(self._runner_app)
            if runner == ours:
                return True
            if runner is not None and on.transactions.get(fence_app(self.feed)) == fence:
                raise LeaseLost(
                    f"{NAME}: another runner of feed {self.feed} has written under this one's fence {fence}: the "
                    "state store was lost while it ran; stop this one"
                )
            return self._put(on, [], fence, Txn(self._runner_app, ours)) or None

        self._commit(attempt)

    def compact(self, fence: int) -> int:
        """Bring small files together in one commit; how many there were. Runs beside `append`."""
        on = self._log.newest()
        taken = [] if on is None else list(_one_level(on.files.values()))
        if on is None or not taken:
            return 0
        merged = [self._write(self._batches(taken))]
        return self._commit(partial(self._exchange, on, taken, merged, fence, len(taken)))

    def drop(self, fence: int, before: int, age_s: float, needed: Collection[int]) -> int:
        """Drop the feed's rows of epochs in front of `before`, of files that were written so many seconds ago, but for
        `needed` ones and those that these build on; how many rows those were. Files are written again in one commit,
        each once at least half of the feed's rows may go.
        """
        on, written_ms = self._log.newest(), world.now_us() // 1000 - age_s * 1000
        if on is None:
            return 0
        files = on.files.values()
        old = [f for f in files if f.add.modification_time < written_ms and self._has_old(f, before)]
        known = self._old
        self._old = {f.path: known[f.path] if f.path in known else self._numbers(f.path, None) for f in old}
        held = self._old
        # Rows behind the last of the old ones build on it, on what it builds on, or on later ones.
        behind = [row.commit.epoch for row in self.last(1, before - 1)]
        stay = self._with_bases(on, [*needed, *behind])
        needless = {path: len(numbers) - len(stay.intersection(numbers)) for path, numbers in held.items()}
        taken = [file for file in old if needless[file.path] * 2 >= max(1, len(held[file.path]))]
        if not taken:
            return 0
        rest = list(self._rest(taken, stay))
        merged = [self._write(rest)] if rest else []
        dropped = sum(needless[file.path] for file in taken)
        return self._commit(partial(self._exchange, on, taken, merged, fence, dropped))

    def checkpoint(self) -> None:
        """Write a checkpoint of the table's log where one is due. Raises SinkError."""
        checkpoint(self._log)

    def newest(self) -> EpochRow | None:
        """The newest committed epoch; None before the first."""
        rows = self.last(1)
        return rows[0] if rows else None

    def last(self, count: int, until: int | None = None) -> list[EpochRow]:
        """The newest `count` epochs, of those up to number `until`; the newest first."""
        on = self._log.newest()
        files = [f for f in _files(on) if until is None or f.first <= until]
        found: list[tuple[int, str]] = []
        # Feeds that share a lake share its files: one may end with an epoch that is not ours.
        for file in sorted(files, key=lambda f: -f.last):
            if len(found) == count and file.last <= found[-1][0]:
                break
            mine = ((number, file.path) for number in self._numbers(file.path, until))
            found = sorted([*found, *mine], reverse=True)[:count]
        records: list[Record] = []
        for path in dict.fromkeys(path for _, path in found):
            numbers = [number for number, where in found if where == path]
            records += self._mine(self._read([path], [("epoch", "in", numbers)]))
        reader = self._reader(on)
        return [reader.row(record) for record in sorted(records, key=lambda r: -r["epoch"])]

    def numbers(self) -> list[int]:
        """The numbers of all committed epochs, in order."""
        files = _files(self._log.newest())
        return sorted(number for file in files for number in self._numbers(file.path, None))

    def at(self, epoch: int) -> EpochRow | None:
        """The epoch of exactly that number; None when it was not committed."""
        on = self._log.newest()
        record = self._record(on, epoch)
        return None if record is None else self._reader(on).row(record)

    def after(self, epoch: int) -> EpochRow | None:
        """The first epoch behind a number of those that the table has; None where it has none."""
        on = self._log.newest()
        found = _LAST_EPOCH
        for file in sorted(_files(on), key=lambda f: f.first):
            if file.first < found and file.last > epoch:
                found = min([found, *(n for n in self._numbers(file.path, None) if n > epoch)])
        return None if found == _LAST_EPOCH else self._row(on, self._reader(on), found)

    def cut_by(self, time_us: int) -> EpochRow | None:
        """The newest epoch that was cut at or before a time (microseconds since 1970); None where none was."""
        on = self._log.newest()
        reader = self._reader(on)
        found: EpochRow | None = None
        later: list[int] = []
        for number, committed_us in self._committed(on):
            # Commits come behind their cuts, so it takes no manifest to pass over what was committed later.
            if committed_us <= time_us and (row := self._row(on, reader, number)).manifest.time_us <= time_us:
                found = row
                break
            later.append(number)
        for number in reversed(later):  # those of which the commit alone came later
            row = self._row(on, reader, number)
            if row.manifest.time_us > time_us:
                break
            found = row
        return found

    def fence(self) -> int:
        """The newest fence that the table carries, also of a runner that committed no epoch; 0 before the first."""
        on = self._log.newest()
        return 0 if on is None else on.transactions.get(fence_app(self.feed), 0)

    def read_all(self) -> list[EpochRow]:
        """All committed epochs in order."""
        on = self._log.newest()
        records = self._mine(self._read([file.path for file in _files(on)]))
        reader = self._reader(on)
        return [reader.row(record) for record in sorted(records, key=lambda r: r["epoch"])]

    @property
    def log(self) -> DeltaLog:
        """The log of the table, as far as this object has read it."""
        return self._log

    @property
    def _app(self) -> str:
        return f"catchment/{self.feed}/epochs"

    @property
    def _runner_app(self) -> str:
        """Its version tells two runners of one fence apart."""
        return f"catchment/{self.feed}/runner"

    def _commit(self, attempt: Callable[[Snapshot], _Result | None]) -> _Result:
        return commit(self._log, attempt, lambda: create_table(self._log, SCHEMA, []))

    def _put(self, on: Snapshot, actions: Iterable[Action], fence: int, *carried: Txn) -> bool:
        """Commit on top of a version, durably; False when another commit came first. The table is marked with today's
        layout first of all: earlier programs refuse it before there is a row that they would misread."""
        info = commit_info("WRITE", world.now_us() // 1000)
        marks = [*remarked(on), fenced(self.feed, fence), *carried]
        return self._log.put(on, info, [*marks, *actions]) is not None

    def _exchange(
        self,
        begun: Snapshot,
        taken: Sequence[LakeFile],
        instead: Sequence[Add],
        fence: int,
        result: int,
        on: Snapshot,
    ) -> int | None:
        """Commit files in place of others of the version on which that was begun: the result, 0 where one of these is
        gone or the cleaner may take the new ones, None when another commit came first."""
        must_lead(on, self.feed, fence, NAME)
        if condemned(on) != condemned(begun) or any(file.path not in on.files for file in taken):
            return 0
        now_ms = world.now_us() // 1000
        removes = [file.removed(now_ms, data_change=True) for file in taken]
        return result if self._put(on, [*instead, *removes], fence) else None

    def _write(self, rows: Iterable[pa.Table | pa.RecordBatch]) -> Add:
        path = f"{world.token()}.parquet"
        told = ("feed", "epoch")
        # Without those of the manifest, which a footer would hold four times over.
        file = write_parquet(self._directory / path, rows, SCHEMA, told)
        stats = delta_stats(file.footer, told)
        return Add(path, file.size, world.now_us() // 1000, True, stats)

    def _numbers(self, path: str, until: int | None) -> list[int]:
        """The feed's epochs in a file, up to `until`."""
        held = read_rows(self._directory / path, columns=["feed", "epoch"])
        numbers: list[int] = held.filter(pc.equal(held["feed"], self.feed))["epoch"].to_pylist()
        return [number for number in numbers if until is None or number <= until]

    def _committed(self, on: Snapshot | None) -> Iterator[tuple[int, int]]:
        """The feed's epochs and the times of their commits, the newest first. Files are read as they are needed."""
        held: list[tuple[int, int]] = []
        files = sorted(_files(on), key=lambda f: -f.last)
        for place, file in enumerate(files):
            rows = read_rows(self._directory / file.path, columns=["feed", "epoch", "committed_us"])
            mine = rows.filter(pc.equal(rows["feed"], self.feed))
            held += zip(mine["epoch"].to_pylist(), mine["committed_us"].to_pylist(), strict=True)
            held.sort()
            following = files[place + 1].last if place + 1 < len(files) else 0
            while held and held[-1][0] > following:
                yield held.pop()

    def _row(self, on: Snapshot | None, reader: RowReader, epoch: int) -> EpochRow:
        """The epoch of a number that the table has."""
        record = self._record(on, epoch)
        assert record is not None
        return reader.row(record)

    def _read(self, paths: Sequence[str], filters: list[tuple[str, str, Any]] | None = None) -> pa.Table:
        tables = [read_rows(self._directory / path, schema=SCHEMA, filters=filters) for path in paths]
        return pa.concat_tables(tables) if tables else SCHEMA.empty_table()

    def _batches(self, files: list[LakeFile]) -> Iterator[pa.RecordBatch]:
        """All rows, a few at a time: together they may be larger than memory."""
        for file in files:
            with lake_parquet(self._directory / file.path) as source:
                yield from source.iter_batches(_BATCH_ROWS)

    def _has_old(self, file: LakeFile, before: int) -> bool:
        """Whether a file has rows of the feed, and none of an epoch from `before` on."""
        told = _EpochsFile.of(file)
        return told.last < before and told.feed in (None, self.feed)

    def _with_bases(self, on: Snapshot | None, epochs: Iterable[int]) -> set[int]:
        """Some epochs, and those whole ones on which their rows build."""
        asked = set(epochs)
        for epoch in asked - self._bases.keys():
            record = self._record(on, epoch)
            link = None if record is None else link_of(record["manifest"].encode())
            self._bases[epoch] = epoch if link is None else link.epoch
        self._bases = {epoch: self._bases[epoch] for epoch in asked}
        return asked.union(self._bases.values())

    def _rest(self, files: Sequence[LakeFile], stay: Collection[int]) -> Iterator[pa.RecordBatch]:
        """The rows of other feeds, and those of ours that stay."""
        numbers = pa.array(sorted(stay), pa.int64())
        for batch in self._batches(list(files)):
            others = pc.not_equal(batch["feed"], self.feed)
            rows = batch.filter(pc.or_(others, pc.is_in(batch["epoch"], numbers)))
            if rows.num_rows:
                yield rows

    def _mine(self, rows: pa.Table) -> list[Record]:
        return [record for record in rows.to_pylist() if record["feed"] == self.feed]

    def _record(self, on: Snapshot | None, epoch: int) -> Record | None:
        """The record of an epoch in a version of the table."""
        paths = [file.path for file in _files(on) if file.first <= epoch <= file.last]
        return next(iter(self._mine(self._read(paths, [("epoch", "=", epoch)]))), None)

    def _reader(self, on: Snapshot | None) -> RowReader:
        return RowReader(lambda epoch: self._record(on, epoch))


def feeds(root: Location) -> list[str]:
    """Names of the feeds that have epochs in a lake."""
    names: set[str] = set()
    for file in _files(DeltaLog(epochs_dir(root)).newest()):
        if file.feed is not None:
            names.add(file.feed)
        else:
            names.update(read_rows(epochs_dir(root) / file.path, columns=["feed"])["feed"].to_pylist())
    return sorted(names)


def _one_level(files: Iterable[LakeFile]) -> list[LakeFile]:
    """Files of about the same number of rows, if there are enough: so each row is written again once a level."""
    levels: list[list[LakeFile]] = [[] for _ in range(_LEVELS)]
    for file in sorted(files, key=lambda f: _EpochsFile.of(f).first):
        level = int(math.log(file.rows, _LEVEL_FILES_MIN))
        if level < _LEVELS:
            levels[level].append(file)
    return next((level for level in levels if len(level) >= _LEVEL_FILES_MIN), [])


class _EpochsFile(msgspec.Struct, frozen=True):
    """A file of the table, from its first epoch to its last. `feed`: whose they are, if they are one feed's."""

    path: str
    first: int
    last: int
    feed: str | None

    @staticmethod
    def of(file: LakeFile) -> "_EpochsFile":
        """As the log tells it."""
        bounds = file.bounds()
        first, last = bounds.of("epoch") or (0, _LAST_EPOCH)
        least, largest = bounds.of("feed") or (None, "")
        return _EpochsFile(file.path, first, last, least if least == largest else None)


def _files(on: Snapshot | None) -> list[_EpochsFile]:
    return [] if on is None else [_EpochsFile.of(file) for file in on.files.values()]
