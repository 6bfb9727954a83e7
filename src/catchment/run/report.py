"""What the loop tells of a committed epoch, for progress bars, metrics and logs."""

from dataclasses import dataclass

from catchment.model.epoch import Commit, Manifest


@dataclass(frozen=True, slots=True)
class Report:
    """One committed epoch.

    `phases`: seconds from the cut on: wait and plan, read, apply. `event_times`: per shard, seconds since
    1970 of the newest group read. `floor_lag`: per shard, bytes of log between the floor and the cut.
    """

    manifest: Manifest
    commit: Commit
    phases: dict[str, float]
    event_times: dict[str, int]
    floor_lag: dict[str, int]

    @property
    def lag_seconds(self) -> float:
        """From the clock's time of the cut to the commit: how old the lake was when the epoch became
        readable.
        """
        return (self.commit.time_us - self.manifest.time_us) / 1e6
