"""The sinks by name. Each is imported when it is asked for: a reader has no feed's packages, and tasks need no sink."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from catchment.model.errors import ConfigError
from catchment.model.location import Location
from catchment.sink.reading import Reading

if TYPE_CHECKING:
    from catchment.config import Feed
    from catchment.sink.port import Sink


@dataclass(frozen=True, slots=True)
class SinkKind:
    """How a sink is made. `sink`: for a feed, with what it calls after each table's commit of an epoch. `reading`: for
    the path of what it holds; None where others read that, not `catchment.read`."""

    sink: "Callable[[Feed, Callable[[], None]], Sink]"
    reading: Callable[[Location], Reading] | None


def sink_of(feed: "Feed", after_table: Callable[[], None] = lambda: None) -> "Sink":
    """The sink that the feed file names. `after_table`: called after each table's commit of an epoch.

    Raises ConfigError for an unknown name.
    """
    return _kind(feed.sink.kind).sink(feed, after_table)


def reading_of(path: Location, kind: str | None = None) -> Reading:
    """What reads at `path`; `kind` as a feed file names it. Raises ConfigError for one that is unknown or not read."""
    reading = _kind(kind).reading
    if reading is None:
        raise ConfigError(f"sink.kind: catchment does not read what a sink {kind} holds; ask it itself")
    return reading(path)


def _kind(name: str | None) -> SinkKind:
    """The kind of that name, without one the first."""
    found = SINKS.get(name) if name is not None else next(iter(SINKS.values()))
    if found is None:
        raise ConfigError(
            f"sink.kind: there is no sink {name}; give one of {', '.join(SINKS)}, or leave it out"
        )
    return found


def _delta(feed: "Feed", after_table: Callable[[], None]) -> "Sink":
    from catchment.sink.delta.upkeep.lake import lake_of

    return lake_of(feed, after_table)


def _delta_reading(path: Location) -> Reading:
    from catchment.sink.delta.reading.lake import DeltaReading

    return DeltaReading(path)


SINKS = {"delta": SinkKind(_delta, _delta_reading)}
