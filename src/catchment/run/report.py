"""What the loop tells of a committed epoch and of a turn without one, for progress bars, metrics and logs."""

from dataclasses import dataclass, field

from catchment.flow.epoch.existence import Existence
from catchment.model.epoch import Commit, Manifest, Refusal


@dataclass(frozen=True, slots=True)
class Report:
    """One committed epoch.

    `phases`: seconds from the cut on: wait and plan, read, apply. `event_times`: per shard, seconds since
    1970 of the newest group read. `floor_lag`: per shard, bytes of log between the floor and the cut. `refused`:
    tables whose copy stands still. `existence`: per shard, what the DDL of the epoch made and took away.
    """

    manifest: Manifest
    commit: Commit
    phases: dict[str, float]
    event_times: dict[str, int]
    floor_lag: dict[str, int]
    refused: tuple[Refusal, ...] = ()
    existence: dict[str, Existence] = field(default_factory=dict)

    @property
    def lag_seconds(self) -> float:
        """From the clock's time of the cut to the commit: how old the lake was when the epoch became
        readable.
        """
        return (self.commit.time_us - self.manifest.time_us) / 1e6


@dataclass(frozen=True, slots=True)
class Rest:
    """A turn that brought nothing: at `time_us` (microseconds since 1970) every shard's log still stood at the
    newest cut. `refused`: tables whose copy stands still.
    """

    time_us: int
    refused: tuple[Refusal, ...] = ()
