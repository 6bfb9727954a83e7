"""The committed epochs of a lake: which one a reader means, and which ones can still be read."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from catchment.api.moment import BEGIN, At, Epoch, Moment, at_or_before, exact
from catchment.model.epoch import EpochRow, epoch_text, gci_of
from catchment.model.errors import CatchmentError, ConfigError, NotInstalled, SinkError
from catchment.model.table import TableId
from catchment.sink.delta.commit import open_table
from catchment.sink.delta.epochs import EpochsTable, feeds
from catchment.sink.delta.history import oldest_version
from catchment.sink.delta.layout import epoch_app, table_dir

if TYPE_CHECKING:
    from catchment.config.feed import Feed

Lake: TypeAlias = "str | Path | Feed"


class CommittedEpoch(msgspec.Struct, frozen=True):
    """An epoch of a lake: its number and text, the time of its cut, and how many changes it brought beside copied rows.

    `readable`: every table can be read as of it. Of an epoch that is not, some table's files or log entries are gone.
    """

    epoch: int
    epoch_text: str
    time: datetime
    changes: int
    readable: bool


class _Reach(msgspec.Struct, frozen=True):
    """How far back a lake table can be read: from version `floor` on. Its newest version, whose newest epoch is
    `carried`, serves for every epoch since."""

    floor: int
    carried: int

    def holds(self, version: int | None, epoch: int) -> bool:
        return version is not None and (version >= self.floor or self.carried <= epoch)


def epochs(lake: Lake, limit: int = 20, *, feed: str | None = None) -> list[CommittedEpoch]:
    """The newest `limit` committed epochs of a feed, the newest first. Arguments and errors are those of `read`."""
    root, own = located(lake)
    name = feed or own or _only_feed(root)
    rows = EpochsTable(root, name).last(limit)
    if not rows:
        raise _no_epoch(root, name, own)
    tables = {shape.table for row in rows for shape in row.manifest.shapes}
    asked = {t: min(row.commit.versions.get(str(t), 0) for row in rows) for t in tables}
    reaches = {t: _reach(root, name, t, asked[t]) for t in tables}
    return [
        CommittedEpoch(
            row.commit.epoch,
            epoch_text(row.commit.epoch),
            BEGIN + timedelta(microseconds=row.manifest.time_us),
            row.manifest.changes,
            _readable(row, {shape.table: reaches[shape.table] for shape in row.manifest.shapes}),
        )
        for row in rows
    ]


def committed(
    lake: Lake,
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    tables: Collection[TableId | str] = (),
) -> tuple[Path, EpochRow]:
    """The lake's directory, absolute, and the row of the epoch that is meant. `tables` tell which of several feeds.

    Raises as `read`.
    """
    if epoch is not None and at is not None:
        raise ConfigError(
            "give epoch=, for exactly that one, or at=, for the newest at or before it; not both"
        )
    root, own = located(lake)
    name = feed or own or _feed_of(root, tables)
    table = EpochsTable(root, name)
    newest = table.newest()
    if newest is None:
        raise _no_epoch(root, name, own)
    if at is not None:
        return root, _at_or_before(root, table, newest, at, tables)
    if epoch is None:
        return root, newest
    number = exact(epoch)
    row = newest if number == newest.commit.epoch else table.at(number)
    if row is None:
        raise ConfigError(
            f"{root}: {name} has not committed epoch {epoch_text(number)}; its newest is "
            f"{epoch_text(newest.commit.epoch)}. at= takes the newest epoch at or before another one"
        )
    return root, row


def located(lake: Lake) -> tuple[Path, str | None]:
    """The directory of a lake, absolute, and the feed's name where a feed or a feed file says it."""
    if isinstance(lake, str | Path):
        if Path(lake).suffix not in (".yaml", ".yml"):
            return Path(lake).absolute(), None
        lake = _feed(Path(lake))
    return lake.sink.path.absolute(), lake.name


def _feed(file: Path) -> "Feed":
    try:
        from catchment.config.file import load
    except ModuleNotFoundError as fault:
        raise NotInstalled(
            f"{file}: reading by a feed file needs pip install 'catchment[feed]' ({fault.name} is missing); or give "
            "the lake's directory, which is sink.path in that file"
        ) from None
    return load(file, secrets=())


def readable_since(root: Path, feed: str, tables: Iterable[TableId]) -> str:
    """For messages: from which epoch on every one of the tables can be read, and up to which."""
    table = EpochsTable(root, feed)
    numbers = table.numbers()
    reaches = {t: _reach(root, feed, t, 0) for t in tables}

    def readable(number: int) -> bool:
        row = table.at(number)
        return row is not None and _readable(row, reaches)

    first = bisect_left(numbers, True, key=readable)
    if first == len(numbers):
        return f"no epoch can be read but the newest, {epoch_text(numbers[-1])}"
    return f"epochs from {epoch_text(numbers[first])} to {epoch_text(numbers[-1])} can be read"


def _at_or_before(
    root: Path, table: EpochsTable, newest: EpochRow, at: At, tables: Collection[TableId | str]
) -> EpochRow:
    now = datetime.now(UTC)
    moment = at_or_before(at, now)
    last = newest.commit.epoch
    if moment.until > last and gci_of(moment.until) > now.timestamp():
        raise ConfigError(
            f"at: {moment.said} lies in the future; the newest epoch of {table.feed} is {epoch_text(last)}"
        )
    row = _newest_in(table, moment)
    if row is None:
        known = [s.table for s in newest.manifest.shapes if not tables or str(s.table) in map(str, tables)]
        raise ConfigError(
            f"{root}: {table.feed} has no epoch at or before {moment.said}; "
            f"{readable_since(root, table.feed, known)}"
        )
    return row


def _newest_in(table: EpochsTable, moment: Moment) -> EpochRow | None:
    until = moment.until
    while rows := table.last(1, until):
        if moment.holds(rows[0].commit.epoch, rows[0].manifest.time_us):
            return rows[0]
        until = rows[0].commit.epoch - 1
    return None


def _readable(row: EpochRow, reaches: dict[TableId, _Reach]) -> bool:
    versions = row.commit.versions
    return all(reach.holds(versions.get(str(t)), row.commit.epoch) for t, reach in reaches.items())


def _reach(root: Path, feed: str, table: TableId, asked: int) -> _Reach:
    directory = table_dir(root, table)
    newest = open_table(directory)
    if newest is None:
        raise SinkError(f"{table}: the lake has no Delta table at {directory}, but an epoch names it")
    carried = newest.transaction_version(epoch_app(feed, table)) or 0
    return _Reach(oldest_version(directory, newest.version(), asked), carried)


def _no_epoch(root: Path, feed: str, own: str | None) -> CatchmentError:
    """A feed without any epoch: a SinkError when a feed file names it and the lake holds none at all."""
    others = feeds(root)
    if own is not None and not others:
        return SinkError(
            f"feed {own}: the lake {root} holds no epoch; run the feed first, correct sink.path, or mount the lake"
        )
    return ConfigError(
        f"{root}: {feed} has not committed any epoch; feeds that have: {', '.join(others) or 'none'}"
    )


def _feed_of(root: Path, tables: Collection[TableId | str]) -> str:
    """The one feed of a lake that has the tables; the only one, where none are named."""
    names = feeds(root)
    if len(names) < 2 or not tables:
        return _only_feed(root)
    held = {name: _tables_of(root, name) for name in names}
    having = [name for name in names if {str(t) for t in tables} <= held[name]]
    if len(having) == 1:
        return having[0]
    wanted = " and ".join(str(table) for table in tables)
    if having:
        raise ConfigError(f"{root}: feeds {' and '.join(having)} have {wanted}; say which with feed=")
    there = "; ".join(f"{name} has {', '.join(sorted(known))}" for name, known in held.items())
    raise ConfigError(f"{root}: no feed of the lake has {wanted}; {there}")


def _tables_of(root: Path, feed: str) -> set[str]:
    row = EpochsTable(root, feed).newest()
    return set() if row is None else set(row.commit.versions)


def _only_feed(root: Path) -> str:
    names: Sequence[str] = feeds(root)
    if len(names) != 1:
        found = f"feeds {', '.join(names)}; say which with feed=" if names else "no committed epoch"
        raise ConfigError(f"{root}: the lake has {found}")
    return names[0]
