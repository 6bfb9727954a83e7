"""Erases rows of a table: from its newest version by a commit, from all else by deleting the files that have them.

What names a file goes before the file: the commit first, then the statistics of the logs, the files last. So whatever
a crash leaves is found again by the files, and the same erasure finishes it.

No settle or join that began before brings rows back. A settle commits on the version that it has read, or not at all. A
join gives up where one of its files is gone.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from msgspec.structs import replace

from catchment import world
from catchment.model.epoch import EpochRow
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkConflict, SinkError
from catchment.model.location import Location, location
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.erasure.alive import alive, living
from catchment.sink.delta.erasure.places import Searched, data_files, ever_named
from catchment.sink.delta.erasure.rewrite import Rewriting
from catchment.sink.delta.erasure.sought import Held, Numbers, Sought
from catchment.sink.delta.erasure.statistics import without_bounds
from catchment.sink.delta.files import delete, exists, name_within
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log.actions import commit_info
from catchment.sink.delta.log.commit import fenced, gone
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.erased import count_erasure, counted
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.plain.change_data import DIRECTORY
from catchment.sink.delta.plain.window import ATTEMPT_SECONDS
from catchment.sink.delta.reading.reach import readable_since
from catchment.sink.delta.tail.generations import tails_of
from catchment.sink.delta.tail.older import must_not_be_older
from catchment.sink.delta.tail.stage import staged_before
from catchment.sink.delta.upkeep.clean import window_hours
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.versions import Versions
from catchment.sink.erasure import Erased, Erasure
from catchment.state.faults import Fault, from_environment

_ATTEMPTS = 50
_PASSES = 10
_NAMED_MAX = 20
Found = Mapping[Location, Held]


def erase(order: UpkeepOrder, erasure: Erasure) -> Erased:
    """Erase rows of a table of the newest epoch, which is settled first.

    Raises SinkError where the source still has one of the keys. It does so, too, where one stands in another spelling
    and the erasure does not say what then. Nothing was erased then. All else that is raised is what a settle raises.
    """
    must_not_be_older(location(order.root), erasure.table)
    row = EpochsTable(location(order.root), order.feed).newest()
    if row is None:
        raise SinkError(f"feed {order.feed}: the lake {order.root} holds no epoch; run the feed first")
    Keeper(order.root, order.feed).carry_out(replace(order, tables=(erasure.table,), cleans=False))
    erasing = _Erasing(order, erasure, row)
    for number in range(_PASSES):
        if not erasing.passes(first=number == 0):
            break
    # Rows that wait for their cut are read again.
    for staged in staged_before(location(order.root), order.feed, math.inf):
        delete(staged)
    # Behind the data files: whoever makes a side file looks first whether its data file is there.
    order.index_of(erasure.table).erase()
    return erasing.result()


class _Erasing:
    """One table, of which rows are erased in passes until one finds nothing to do."""

    def __init__(self, order: UpkeepOrder, erasure: Erasure, row: EpochRow) -> None:
        self._order, self._erasure, self._epoch = order, erasure, row.commit.epoch
        self._shape, root = row.manifest.shape(erasure.table), location(order.root)
        self._plain = DeltaLog(table_dir(root, erasure.table))
        tails = {number: DeltaLog(at) for number, at in tails_of(root, erasure.table).items()}
        self._tails = [
            _TailOf(log, earlier=number < self._shape.generation)
            for number, log in tails.items()
            if log.newest() is not None
        ]
        self._searched = Searched(Sought(erasure, self._shape))
        self._rewriting = Rewriting(self._plain.directory, self._shape)
        self._fault = from_environment()
        self._rows = dict.fromkeys(("table", "history", "tail", "change_data", "kept"), 0)
        self._keys: set[int] = set()
        self._rewritten = self._deleted = self._newer = 0
        self._keeps_told = False

    def passes(self, *, first: bool) -> bool:
        """Erase what is found now; whether there was anything to do. Of files that are listed before the commit, those
        that it does not name are never committed later."""
        plain = self._holding(data_files(self._plain.directory))
        tails = [self._holding(data_files(tail.log.directory)) for tail in self._tails]
        committed = self._commit(plain, first=first)
        if committed is None:
            return False
        self._fault(Fault.DURING_ERASE)
        cleared = self._clear(self._plain.directory, plain, _newest(self._plain).files)
        for tail, found in zip(self._tails, tails, strict=True):
            if first or found:
                self._count(tail.log)
            cleared += self._clear(tail.log.directory, found, tail.unsettled())
        self._fault(Fault.DURING_ERASE)
        deleted = self._delete_of_plain(plain) + sum(map(self._delete_of_tail, self._tails, tails))
        return bool(committed or cleared or deleted)

    def result(self) -> Erased:
        """What all passes have done."""
        order, table = self._order, self._erasure.table
        root = location(order.root)
        Versions(root, order.feed).record({table: self._plain})
        window = timedelta(
            hours=window_hours(order.keep_seconds), seconds=ATTEMPT_SECONDS if self._keeps_told else 0
        )
        return Erased(
            str(table),
            self._erasure.keys.num_rows,
            len(self._keys),
            self._rows,
            self._rewritten,
            self._deleted,
            self._newer,
            tuple(sorted(map(str, self._searched.unreadable))),
            readable_since(root, order.feed, [table]),
            datetime.now(UTC) + window if self._rows["kept"] else None,
        )

    def _holding(self, paths: Iterable[Location]) -> Found:
        """Files that have rows of the keys. Raises SinkError where one stands in another spelling, and the erasure does
        not say what then."""
        found = self._searched.holding(paths)
        if self._erasure.spelling is None:
            other = np.concatenate(
                [np.empty(0, np.int64), *(held.keys[held.other] for held in found.values())]
            )
            if len(other):
                raise SinkError(
                    f"{self._erasure.table}: the lake has {_said(np.unique(other))} in another spelling (case, "
                    "accents, spaces at the end), which the source may take for the same key; give --spelling any to "
                    "erase those rows, too, or --spelling exact to leave them"
                )
        self._keys.update(int(key) for held in found.values() for key in held.keys)
        return found

    def _commit(self, listed: Found, *, first: bool) -> bool | None:
        """Commit the newest version without the rows. False: there is nothing to commit. None: the source has a key
        again, which it had not in the first pass."""
        log, order = self._plain, self._order
        for _ in range(_ATTEMPTS):
            on = log.newest()
            if on is None:
                gone(str(self._erasure.table), log.directory)
            must_lead(on, order.feed, order.fence, str(self._erasure.table))
            paths = [log.directory / name for name in on.files]
            held = {self._name(path): of_file for path, of_file in self._holding(paths).items()}
            self._searched.must_be_readable(paths)
            live = living(log.directory, on, held)
            back = alive(log.directory, self._shape, live)
            if len(back):
                if first:
                    raise self._alive(back, live)
                return None
            if not held and not self._disposable(listed, on):
                if first:
                    self._count(log)
                return False
            actions = self._rewriting.replacing(on, held, data_change=bool(live))
            told = self._rewriting.untold(on) if live else []
            self._fault(Fault.DURING_ERASE)
            now_ms = world.now_us() // 1000
            marks = [fenced(order.feed, order.fence), counted(on)]
            if log.put(on, commit_info("ERASE", now_ms), [*marks, *actions, *told]) is not None:
                self._rewriting.forget_others(held)
                self._rewritten += len(held)
                self._rows["table"] += sum(map(len, live.values()))
                return True
        raise SinkConflict(
            f"{self._erasure.table}: other writers won {_ATTEMPTS} commits in a row at {log.directory}; end them"
        )

    def _alive(self, keys: Numbers, live: Mapping[str, Held]) -> SinkError:
        rows = sum(int(np.isin(held.keys, keys).sum()) for held in live.values())
        return SinkError(
            f"{self._erasure.table}: as of epoch {epoch_text(self._epoch)} the source has {_said(keys)} ({rows} rows), "
            "so they would come again; delete them there, wait until an epoch that has this is committed, then erase"
        )

    def _name(self, path: Location) -> str:
        return name_within(self._plain.directory, path)

    def _disposable(self, listed: Found, on: Snapshot) -> list[Location]:
        """The files of the plain table that no version will need, and none has needed that is to be kept. A settle may
        still commit a chunk of a later epoch, whose name it has linked before."""
        replaced = [path for path in listed if self._name(path) not in on.files]
        keeps = self._erasure.keeps_versions
        if not keeps and all(_epoch_of(path) <= self._epoch for path in replaced):
            return replaced
        named = ever_named(self._plain.directory)
        return [
            path
            for path in replaced
            if (not keeps if self._name(path) in named else _epoch_of(path) <= self._epoch)
        ]

    def _count(self, log: DeltaLog) -> None:
        """Count the erasure in a log, before bounds are taken out of its checkpoints."""
        count_erasure(log, self._order.feed, self._order.fence, str(self._erasure.table))

    def _clear(self, directory: Location, listed: Found, stay: Collection[str]) -> int:
        """Take the bounds of files that have the rows, but for those that stay, out of a log, and those of files that
        are gone."""
        held = {name_within(directory, path) for path in listed}.difference(stay)
        return without_bounds(directory, lambda name: name in held or not exists(directory / name))

    def _delete_of_plain(self, listed: Found) -> int:
        on = _newest(self._plain)
        gone = self._disposable(listed, on)
        for path in gone:
            told = self._name(path).startswith(DIRECTORY)
            self._rows["change_data" if told else "history"] += len(listed[path])
        self._delete(gone)
        left = [path for path in listed if self._name(path) not in on.files and path not in gone]
        kept = left if self._erasure.keeps_versions else []
        self._rows["kept"] = sum(len(listed[path]) for path in kept)
        self._keeps_told = any(self._name(path).startswith(DIRECTORY) for path in kept)
        self._newer = sum(len(listed[path]) for path in left if path not in kept)
        return len(gone)

    def _delete_of_tail(self, tail: "_TailOf", listed: Found) -> int:
        """Files of epochs that came since may be committed still, or wait to be settled: they stay."""
        directory, unsettled = tail.log.directory, tail.unsettled()
        names = {path: name_within(directory, path) for path in listed}
        newer = [path for path in listed if names[path] in unsettled or _epoch_of(path) > self._epoch]
        kept = ever_named(directory) if self._erasure.keeps_versions else set()
        done = [path for path in listed if path not in newer]
        gone = [path for path in done if names[path] not in kept]
        self._rows["tail"] += sum(len(listed[path]) for path in gone)
        self._delete(gone)
        self._rows["kept"] += sum(len(listed[path]) for path in done if names[path] in kept)
        self._newer += sum(len(listed[path]) for path in newer)
        return len(gone)

    def _delete(self, paths: Iterable[Location]) -> None:
        for path in paths:
            delete(path)
            self._deleted += 1
            self._fault(Fault.DURING_ERASE)


@dataclass(frozen=True)
class _TailOf:
    """The tail of one copy of the table; `earlier` than the copy that readers of the newest epoch see."""

    log: DeltaLog
    earlier: bool

    def unsettled(self) -> Collection[str]:
        """The files that wait to be settled. Those of an earlier copy never are: the plain table is a later one."""
        return () if self.earlier else _newest(self.log).files.keys()


def _newest(log: DeltaLog) -> Snapshot:
    on = log.newest()
    if on is None:
        gone(log.directory.name, log.directory)
    return on


def _epoch_of(path: Location) -> int:
    """The epoch that a file of a tail was written for; -1 where its name does not tell, as those of earlier layouts."""
    first = path.name.partition("-")[0]
    return int(first) if first.isdigit() else -1


def _said(keys: Numbers) -> str:
    """Keys by their place among those given: their values may be personal data."""
    named = ", ".join(str(key + 1) for key in keys[:_NAMED_MAX])
    more = f" and {len(keys) - _NAMED_MAX} more" if len(keys) > _NAMED_MAX else ""
    return f"key number {named}{more} of those given"
