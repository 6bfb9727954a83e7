"""Every group of a log with its end, read with mysql-replication; shares no code with catchment."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pymysqlreplication.event import (
    GtidEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)

from tests.world.log_groups import Place, images_of, log_reader, text_of

_XA = re.compile(r"XA (START|END|COMMIT|ROLLBACK) (\S+)")


class Change(NamedTuple):
    """A row before and after, None where there is none."""

    table: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True)
class LoggedGroup:
    """A group of the log: where it ends, its GTID's sequence number, its changes."""

    end: Place
    sequence: int
    changes: tuple[Change, ...]


def read_groups(login: Mapping[str, Any], start: Place) -> Iterator[LoggedGroup]:
    """All groups from `start`, which lies between two groups, to the end of the log."""
    reader = log_reader(login, start)
    file, sequence, alone, changes = start.file, 0, False, list[Change]()
    xid, prepared = "", dict[str, list[Change]]()
    try:
        for event in reader:
            if isinstance(event, RotateEvent):
                file = event.next_binlog
            elif isinstance(event, MariadbGtidEvent):
                sequence, alone, changes = int(event.gtid.rpartition("-")[2]), bool(event.flags & 1), []
            elif isinstance(event, GtidEvent):
                sequence, alone, changes = int(event.gno), False, []
            elif isinstance(event, XAPrepareEvent):
                prepared[xid] = changes
                yield LoggedGroup(Place(file, event.packet.log_pos), sequence, ())
            elif isinstance(event, QueryEvent) and (named := _XA.match(text_of(event.query))) is not None:
                xid = named[2]
                if named[1] in ("COMMIT", "ROLLBACK"):
                    ended = prepared.pop(xid)
                    counted = tuple(ended) if named[1] == "COMMIT" else ()
                    yield LoggedGroup(Place(file, event.packet.log_pos), sequence, counted)
            elif isinstance(event, XidEvent) or (
                isinstance(event, QueryEvent) and (alone or _commits(event))
            ):
                yield LoggedGroup(Place(file, event.packet.log_pos), sequence, tuple(changes))
            elif not isinstance(event, QueryEvent):
                changes += [Change(f"{event.schema}.{event.table}", *images) for images in images_of(event)]
    finally:
        reader.close()


def _commits(event: Any) -> bool:
    query = text_of(event.query)
    assert query.upper() in ("BEGIN", "COMMIT"), query
    return query.upper() == "COMMIT"
