"""What a run tells, as events: one flat mapping for each change, of which a program makes what it needs.

`catchment run --events json` prints them (docs/operations.md). An event is what became different. So whoever makes
events calls these methods in the order in which the run told them.
"""

from collections.abc import Collection, Iterable, Iterator

from catchment.config import NotifyEvent
from catchment.model.cut import Cut
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.order import Kept
from catchment.model.sessions import Held
from catchment.model.shard import Copy
from catchment.model.table import ShardTable, TableId
from catchment.model.table_state import TableState, state_with
from catchment.model.throttle import Throttled
from catchment.state.moments import time_text
from catchment.state.notes import LOG, Trouble
from catchment.watch.report import Report, Rest

Event = dict[str, object]

# Of these the events `started`, `ended`, `table`, `shard` and `away` tell, sooner and with more.
_TOLD_OTHERWISE = (
    NotifyEvent.START,
    NotifyEvent.END,
    NotifyEvent.STALE,
    NotifyEvent.SHARD_AWAY,
    NotifyEvent.STATE_AWAY,
    NotifyEvent.LAKE_AWAY,
)


class EventLines:
    """Makes events of what one run tells, and keeps what it has told. One call at a time."""

    def __init__(self) -> None:
        self._standing: Manifest | None = None
        self._states: dict[TableId, TableState] = {}
        self._phases: dict[ShardTable, str] = {}
        self._troubles: dict[tuple[str, str], Trouble] = {}
        self._throttled: dict[str, Throttled] = {}
        self._rests = False
        self._copied_at: int | None = None
        self._caught_up = False

    def leased(self, fence: int) -> Iterator[Event]:
        """The run holds the feed."""
        yield {"event": "lease", "fence": fence}

    def doing(self, what: str) -> Iterator[Event]:
        """The run is busy with something before its first epoch."""
        yield {"event": "doing", "what": what}

    def began(self, standing: Manifest) -> Iterator[Event]:
        """The run goes on from here; of what is so by then only this tells."""
        self._standing, self._rests = standing, False
        self._states, self._phases = _states(standing), _phases(standing.cut)
        self._copied_at, self._caught_up = None, False
        tables = {str(table): state.value for table, state in sorted(self._states.items())}
        yield {"event": "begun", "epoch": epoch_text(standing.epoch), "cut": _cut(standing), "tables": tables}

    def committed(self, report: Report) -> Iterator[Event]:
        """An epoch is in the lake."""
        manifest = report.manifest
        yield {
            "event": "epoch",
            "epoch": epoch_text(manifest.epoch),
            "cut": _cut(manifest),
            "absent": sorted(manifest.absent),
            "changes": manifest.changes,
            "rows_copied": sum(delta.copied for delta in manifest.deltas),
            "copied": manifest.cut.copied,
            "lag_seconds": round(report.lag_seconds, 3),
        }
        before, self._standing, self._rests = self._standing, manifest, False
        if before is None or not manifest.cut.copied_as(before.cut):
            yield from self._copies(manifest.cut)
        elif manifest.stale == before.stale and manifest.outside == before.outside:
            yield from self._caught_up_at(manifest.epoch)
            return
        yield from self._tables(manifest)
        yield from self._caught_up_at(manifest.epoch)

    def rested(self, rest: Rest) -> Iterator[Event]:
        """A turn found no log moved; told once until the next epoch."""
        if self._rests or self._standing is None:
            return
        self._rests = True
        yield {"event": "rest", "epoch": epoch_text(self._standing.epoch), "absent": sorted(rest.absent)}
        if not rest.absent and self._standing.cut.copied:
            yield from self.caught_up()

    def caught_up(self) -> Iterator[Event]:
        """All is copied, and nothing of the log is left; told once until rows are left again."""
        if self._standing is not None and not self._caught_up:
            self._caught_up = True
            yield {"event": "caught_up", "epoch": epoch_text(self._standing.epoch)}

    def in_trouble(self, troubles: tuple[Trouble, ...]) -> Iterator[Event]:
        """What the run tries again, and when it fails by another kind of error."""
        before, self._troubles = self._troubles, {one.key: one for one in troubles}
        for key, one in self._troubles.items():
            if key in before and before[key].kind == one.kind:
                continue
            why: Event = {"since": time_text(one.since_us), "error": one.kind, "message": one.message}
            if one.shard:
                state = "away" if one.away not in ("", LOG) else "fails"
                yield {"event": "shard", "shard": one.shard, "state": state, **why}
            elif one.away:
                yield {"event": "away", "what": one.away, "state": "away", **why}
            else:
                yield {"event": "retry", **why}
        for shard, away in before.keys() - self._troubles.keys():
            if shard:
                yield {"event": "shard", "shard": shard, "state": "back"}
            elif away:
                yield {"event": "away", "what": away, "state": "back"}

    def throttled(self, shards: tuple[Throttled, ...]) -> Iterator[Event]:
        """Of which shards no rows are copied for the source's sake."""
        before, self._throttled = self._throttled, {one.shard: one for one in shards}
        for shard, one in self._throttled.items():
            if shard not in before or before[shard].breach.check is not one.breach.check:
                yield {"event": "throttle", "shard": shard, "state": "waits", "reason": str(one.breach)}
        for shard in before.keys() - self._throttled.keys():
            yield {"event": "throttle", "shard": shard, "state": "copies"}

    def held(self, held: Held) -> Iterator[Event]:
        """How many sessions the run has, of each shard."""
        waits = bool(held.waits_since_us)
        yield {"event": "sessions", "state": "waits" if waits else "holds", "held": dict(held.sessions)}

    def answered(self, orders: tuple[Kept, ...]) -> Iterator[Event]:
        """Orders were taken up."""
        for kept in orders:
            answer = kept.answer
            if answer is not None:
                yield {
                    "event": "order",
                    "number": kept.number,
                    "order": str(kept.order),
                    "user": kept.order.user,
                    "state": "done" if answer.done else "refused",
                    "answer": answer.said,
                }

    def settled(self, tables: Collection[TableId]) -> Iterator[Event]:
        """A settle has ended."""
        yield {"event": "settled", "tables": sorted(map(str, tables))}

    def noticed(self, told: tuple[NotifyEvent, str]) -> Iterator[Event]:
        """What a notice tells."""
        event, message = told
        if event not in _TOLD_OTHERWISE:
            yield {"event": "notice", "notice": event.value, "message": message}

    def warned(self, message: str) -> Iterator[Event]:
        """A line of the log."""
        yield {"event": "warning", "message": message}

    def _copies(self, cut: Cut) -> Iterator[Event]:
        before, self._phases = self._phases, _phases(cut)
        for shard, state in cut.shards.items():
            for copy in state.copies:
                place = ShardTable(shard, copy.table)
                phase = self._phases.get(place)
                if phase is not None and phase != before.get(place):
                    table = str(copy.table)
                    yield {"event": "copy", "table": table, "shard": shard, "state": phase, "rows": copy.rows}

    def _tables(self, manifest: Manifest) -> Iterator[Event]:
        before, self._states = self._states, _states(manifest, self._states)
        for table, state in sorted(self._states.items()):
            was = before.get(table, TableState.WAITING)
            if state is was:
                continue
            event: Event = {"event": "table", "table": str(table), "from": was.value, "state": state.value}
            stale = manifest.stale_since(table)
            if stale is not None:
                event |= {"as_of": epoch_text(stale.epoch), "reason": stale.reason}
            yield event

    def _caught_up_at(self, epoch: int) -> Iterator[Event]:
        """The log of the moment when all was first seen to be copied is in the lake with a later epoch."""
        if self._standing is None or not self._standing.cut.copied:
            self._copied_at, self._caught_up = None, False
        elif self._copied_at is None:
            self._copied_at = epoch
        elif epoch > self._copied_at:
            yield from self.caught_up()


def _cut(manifest: Manifest) -> dict[str, str]:
    """As `catchment status --json` has it."""
    return {shard: str(position) for shard, position in manifest.cut.positions.items()}


def _states(manifest: Manifest, known: Iterable[TableId] = ()) -> dict[TableId, TableState]:
    """Where all tables of a manifest stand, and those that were known before."""
    copies: dict[TableId, list[Copy]] = {table: [] for table in (*known, *manifest.tables)}
    for copy in manifest.cut.copies:
        copies[copy.table].append(copy)
    return {table: state_with(manifest, table, found) for table, found in copies.items()}


def _phases(cut: Cut) -> dict[ShardTable, str]:
    """How far the copies are of which something is there."""
    return {
        ShardTable(shard, copy.table): "done" if copy.done else "begun"
        for shard, state in cut.shards.items()
        for copy in state.copies
        if copy.done or copy.copied is not None or copy.rows
    }
