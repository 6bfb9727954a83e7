"""What a run tells of itself, for progress bars, metrics and logs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from catchment.model.epoch import Commit, Manifest
from catchment.model.progress import Progress
from catchment.model.refusal import Refusal
from catchment.model.throttle import Throttled
from catchment.schema.existence import Existence
from catchment.state.notes import Trouble


@dataclass(frozen=True, slots=True)
class Report:
    """One committed epoch.

    `phases`: seconds from the cut on: wait and plan, read, apply. `event_times`: per shard, seconds since
    1970 of the newest group read. `floor_lag`: per shard, bytes of log between the floor and the cut. `refused`:
    tables whose copy stands still. `existence`: per shard, what the DDL of the epoch made and took away.
    `settling`: the sink is settling.
    """

    manifest: Manifest
    commit: Commit
    phases: dict[str, float]
    event_times: dict[str, int]
    floor_lag: dict[str, int]
    refused: tuple[Refusal, ...] = ()
    existence: dict[str, Existence] = field(default_factory=dict)
    settling: bool = False

    @property
    def lag_seconds(self) -> float:
        """From the clock's time of the cut to the commit: how old the lake was when the epoch became
        readable.
        """
        return (self.commit.time_us - self.manifest.time_us) / 1e6


@dataclass(frozen=True, slots=True)
class Rest:
    """A turn that brought nothing: at `time_us` (microseconds since 1970) every shard's log still stood at the
    newest cut. `refused`: tables whose copy stands still. `absent`: the shards that did not answer, and as of when
    their rows stand (microseconds since 1970).
    """

    time_us: int
    refused: tuple[Refusal, ...] = ()
    absent: Mapping[str, int] = field(default_factory=dict)


def _ignore(told: object) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Observer:
    """What the starter of a run wants to be told. A call that fails is logged, and ends nothing.

    `doing`: what the run is busy with before its first epoch. `committed`: after each commit, from the apply thread.
    `rested`: after each turn that found no log moved. `in_trouble`: when what the run tries again changes.
    `throttled`: when that changes of which shards no rows are copied for the source's sake, or why.
    `progressed`: once a second, when there is an epoch.
    """

    doing: Callable[[str], None] = _ignore
    committed: Callable[[Report], None] = _ignore
    rested: Callable[[Rest], None] = _ignore
    in_trouble: Callable[[tuple[Trouble, ...]], None] = _ignore
    throttled: Callable[[tuple[Throttled, ...]], None] = _ignore
    progressed: Callable[[Progress], None] = _ignore


NOBODY = Observer()
