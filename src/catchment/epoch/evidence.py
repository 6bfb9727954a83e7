"""What shows at which cuts rows count that were SELECTed in front of them, and from where their log is read (DESIGN 4).

The rule is that of rewind, with the cut behind the SELECT. Of a key, the last after image in (floor, cut] counts, else
what the SELECT returned. So the floor must be visible to the SELECT, and the SELECT may see nothing beyond the cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from catchment.epoch.xa import hidden_from
from catchment.model.position import LogOffset, Xid, reaches
from catchment.model.shard import ShardState


@dataclass(frozen=True, slots=True)
class Marks:
    """Two marks of one shard's log: `low` was committed in front of the first SELECT, `high` was written behind the
    last one. `listed`: what XA RECOVER listed between `low` and the first SELECT."""

    low: str
    high: str
    listed: tuple[Xid, ...] = ()

    def floor(self, state: ShardState) -> LogOffset | None:
        """Where the log of the rows begins. `state`: of the shard at the cut in front of the low mark.

        The server commits in the order of its log, so all that stands in front of the low mark is visible behind it.
        An XA COMMIT is the exception (DESIGN 3). While XA RECOVER lists one, it stands behind the floor.
        """
        return hidden_from(state.position.prepared, self.listed) or state.position.at

    def why_not(self, cut: LogOffset, met: Mapping[str, int]) -> str:
        """What keeps the rows from counting at a cut; empty: nothing. `met`: the groups in which marks stand, of the
        log from the floor to the cut."""
        if self.low not in met:
            return f"the low mark does not stand in the log up to {cut}"
        if self.high not in met:
            return f"the high mark does not stand in the log up to {cut}"
        return "" if met[self.low] < met[self.high] else "the marks do not stand in their order"


@dataclass(frozen=True, slots=True)
class SnapshotAt:
    """The place in the log of the newest consistent snapshot of which rows were SELECTed.

    It is taken on credit, and may run ahead of what the snapshot shows, or of the log (DESIGN 3). So it is no floor. A
    cut that reaches it lies behind all that the snapshot shows.
    """

    at: LogOffset

    def floor(self, state: ShardState) -> LogOffset | None:
        """The newest sealed position: it was proven before the snapshot was taken."""
        return state.sealed

    def why_not(self, cut: LogOffset, met: Mapping[str, int]) -> str:
        """What keeps the rows from counting at a cut; empty: nothing. There are no marks."""
        return "" if reaches(cut, self.at) else f"the cut {cut} lies in front of the snapshot at {self.at}"


@dataclass(frozen=True, slots=True)
class Between:
    """Two places in the log of one shard: `proven` was visible in front of the first SELECT, and the log stood at
    `told` after the last one. `at_once`: all SELECTs show one moment.

    Servers write a transaction to the log before they make it visible. So whatever a SELECT shows lies in front of a
    place that the server tells afterwards.
    """

    proven: LogOffset
    told: LogOffset
    at_once: bool = False

    def floor(self, state: ShardState) -> LogOffset | None:
        """What was proven in front of the first SELECT."""
        return self.proven

    def why_not(self, cut: LogOffset, met: Mapping[str, int]) -> str:
        """What keeps the rows from counting at a cut; empty: nothing. There are no marks."""
        return (
            ""
            if reaches(cut, self.told)
            else f"the cut {cut} lies in front of {self.told}, where the log stood after the SELECTs"
        )


Evidence = Marks | SnapshotAt | Between
