"""A client of a stream as one would write it: it applies events to dicts. It shares no code with the stream."""

from typing import Any

from catchment.serve.stream.events import Ddl, Event, Restart, Row, VGtid
from tests.world.canonical import Key, canonical_row, key_of

Place = tuple[str, str]


class Mirror:
    """`rows` by shard and table, then by key. `text` of the last vgtid."""

    def __init__(self, keys: dict[str, tuple[str, ...]]) -> None:
        self.keys = keys
        self.rows: dict[Place, dict[Key, dict[str, Any]]] = {}
        self.text = ""
        self.restarts = 0

    def copy(self) -> "Mirror":
        """What a client that keeps its state with its vgtid has after it was killed."""
        kept = Mirror(self.keys)
        kept.text, kept.restarts = self.text, self.restarts
        # Rows change in place where a column comes or goes; their values never do.
        kept.rows = {
            place: {key: dict(row) for key, row in rows.items()} for place, rows in self.rows.items()
        }
        return kept

    def take(self, event: Event) -> None:
        """Apply one event."""
        if isinstance(event, Row):
            mine = self.rows.setdefault((event.shard, str(event.table)), {})
            key = self.keys[str(event.table)]
            if event.before is not None:
                mine.pop(key_of(event.before, key), None)
            if event.after is not None:
                mine[key_of(event.after, key)] = canonical_row(event.after)
        elif isinstance(event, Restart):
            self.restarts += 1
            self.rows.pop((event.shard, str(event.table)), None)
        elif isinstance(event, Ddl):
            self._altered(event)
        elif isinstance(event, VGtid):
            self.text = event.text

    def _altered(self, event: Ddl) -> None:
        place = event.shard, str(event.table)
        if event.emptied:
            self.rows.pop(place, None)
        for row in self.rows.get(place, {}).values():
            for name in event.dropped:
                row.pop(name, None)
            for old, new in event.renamed.items():
                row[new] = row.pop(old)
            row.update(event.added)
