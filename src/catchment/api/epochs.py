"""The committed epochs of a lake: which one a reader means, and which ones can still be read."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from catchment.api.moment import BEGIN, At, Epoch, at_or_before, exact
from catchment.model.epoch import EpochRow
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, ConfigError, SinkError
from catchment.model.extras import needing
from catchment.model.location import Location, ObjectPath, location
from catchment.model.table import TableId
from catchment.sink.reading import Reading
from catchment.sink.registry.sinks import reading_of

if TYPE_CHECKING:
    from catchment.config.feed import Feed

Lake: TypeAlias = "str | Location | Feed"


class CommittedEpoch(msgspec.Struct, frozen=True):
    """An epoch of a lake: its number and text, the time of its cut, and how many changes it brought beside copied rows.

    `readable`: every table can be read as of it. Of an epoch that is not, some table's files or log entries are gone.
    `absent`: the shards that could not be read for it, and as of when their rows stand.
    """

    epoch: int
    epoch_text: str
    time: datetime
    changes: int
    readable: bool
    absent: dict[str, datetime] = {}


@dataclass(frozen=True, slots=True)
class Place:
    """Where epochs are read, an absolute path or an address; the feed's name where a feed or a feed file says it."""

    path: Location
    reading: Reading
    feed: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """An epoch, and where it was found."""

    place: Place
    row: EpochRow


def epochs(
    lake: Lake, limit: int = 20, *, feed: str | None = None, kept: bool = False
) -> list[CommittedEpoch]:
    """The newest `limit` committed epochs of a feed, the newest first. `kept`: of those alone that stay beyond its
    `sink.keep`, of which there may be none. Arguments and errors are those of `read`."""
    place = located(lake)
    name = feed or place.feed or _only_feed(place)
    known = place.reading.epochs(name)
    rows = known.last(1 if kept else limit)
    if not rows:
        raise _no_epoch(place, name)
    if kept:
        numbers = sorted(place.reading.kept(name), reverse=True)[:limit]
        rows = [row for number in numbers if (row := known.at(number)) is not None]
    return [
        CommittedEpoch(
            row.commit.epoch,
            epoch_text(row.commit.epoch),
            _time(row.manifest.time_us),
            row.manifest.changes,
            readable,
            {shard: _time(since) for shard, since in row.manifest.absent.items()},
        )
        for row, readable in zip(rows, place.reading.readable(name, rows), strict=True)
    ]


def _time(us: int) -> datetime:
    return BEGIN + timedelta(microseconds=us)


def committed(
    lake: Lake,
    epoch: Epoch | None = None,
    *,
    at: At | None = None,
    feed: str | None = None,
    tables: Collection[TableId | str] = (),
) -> Committed:
    """The epoch that is meant. `tables` tell which of several feeds.

    Raises as `read`.
    """
    if epoch is not None and at is not None:
        raise ConfigError(
            "give epoch=, for exactly that one, or at=, for the newest at or before it; not both"
        )
    place = located(lake)
    name = feed or place.feed or _feed_of(place, tables)
    known = place.reading.epochs(name)
    newest = known.newest()
    if newest is None:
        raise _no_epoch(place, name)
    if at is not None:
        return Committed(place, _at_or_before(place, newest, at, tables))
    if epoch is None:
        return Committed(place, newest)
    number = exact(epoch)
    row = newest if number == newest.commit.epoch else known.at(number)
    if row is None:
        raise ConfigError(
            f"{place.path}: {name} has not committed epoch {epoch_text(number)}; its newest is "
            f"{epoch_text(newest.commit.epoch)}. at= takes the newest epoch at or before another one; of epochs "
            "that are older than two days a lake knows those that it keeps"
        )
    return Committed(place, row)


def located(lake: Lake) -> Place:
    """Where a lake lies, and what reads it."""
    if isinstance(lake, str | Path | ObjectPath):
        place = location(lake)
        if not isinstance(place, Path) or place.suffix not in (".yaml", ".yml"):
            path = _absolute(place)
            return Place(path, reading_of(path))
        lake = _feed(place)
    path = _absolute(lake.sink.path)
    return Place(path, reading_of(path, lake.sink.kind), lake.name)


def _absolute(place: Location) -> Location:
    return place.absolute() if isinstance(place, Path) else place


def _feed(file: Path) -> "Feed":
    directory = "give the lake's directory, which is sink.path in that file"
    with needing(f"{file}: reading by a feed file", "stream", directory):
        from catchment.config.file import load
    return load(file, secrets=())


def _at_or_before(place: Place, newest: EpochRow, at: At, tables: Collection[TableId | str]) -> EpochRow:
    now = datetime.now(UTC)
    moment = at_or_before(at, now)
    name, last = newest.manifest.feed, newest.commit.epoch
    if moment.lies_after(last, newest.manifest.time_us, now):
        raise ConfigError(
            f"at: {moment.said} lies in the future; the newest epoch of {name} is {epoch_text(last)}"
        )
    known = place.reading.epochs(name)
    found = known.last(1, moment.until) if moment.time_us is None else [known.cut_by(moment.time_us)]
    row = next(iter(found), None)
    if row is None:
        held = [s.table for s in newest.manifest.shapes if not tables or str(s.table) in map(str, tables)]
        raise ConfigError(
            f"{place.path}: {name} has no epoch at or before {moment.said}; "
            f"{place.reading.readable_since(name, held)}"
        )
    following = None if row.commit.epoch == moment.until else known.after(row.commit.epoch)
    if following is not None and following.manifest.previous != row.commit.epoch:
        sides = f"{epoch_text(row.commit.epoch)} before it and {epoch_text(following.commit.epoch)} after it"
        raise SinkError(
            f"{place.path}: the newest epoch of {name} at or before {moment.said} is not known any more: of those that "
            f"are older than two days a lake knows those that it keeps; the nearest: {sides}"
        )
    return row


def _no_epoch(place: Place, feed: str) -> CatchmentError:
    """A feed without any epoch: a SinkError when a feed file names it and the lake holds none at all."""
    others = place.reading.feeds()
    if place.feed is not None and not others:
        return SinkError(
            f"feed {place.feed}: the lake {place.path} holds no epoch; run the feed first, correct sink.path, or mount "
            "the lake"
        )
    return ConfigError(
        f"{place.path}: {feed} has not committed any epoch; feeds that have: {', '.join(others) or 'none'}"
    )


def _feed_of(place: Place, tables: Collection[TableId | str]) -> str:
    """The one feed of a lake that has the tables; the only one, where none are named."""
    names = place.reading.feeds()
    if len(names) < 2 or not tables:
        return _only_feed(place)
    held = {name: _tables_of(place, name) for name in names}
    having = [name for name in names if {str(t) for t in tables} <= held[name]]
    if len(having) == 1:
        return having[0]
    wanted = " and ".join(str(table) for table in tables)
    if having:
        raise ConfigError(f"{place.path}: feeds {' and '.join(having)} have {wanted}; say which with feed=")
    there = "; ".join(f"{name} has {', '.join(sorted(known))}" for name, known in held.items())
    raise ConfigError(f"{place.path}: no feed of the lake has {wanted}; {there}")


def _tables_of(place: Place, feed: str) -> set[str]:
    row = place.reading.epochs(feed).newest()
    return set() if row is None else set(row.versions)


def _only_feed(place: Place) -> str:
    names = place.reading.feeds()
    if len(names) != 1:
        found = f"feeds {', '.join(names)}; say which with feed=" if names else "no committed epoch"
        raise ConfigError(f"{place.path}: the lake has {found}")
    return names[0]
