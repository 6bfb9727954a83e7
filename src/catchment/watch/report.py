"""What a run tells of itself, for progress bars, metrics, logs and programs."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from catchment.config import NotifyEvent
from catchment.model.epoch import Commit, Manifest
from catchment.model.order import Kept
from catchment.model.progress import Progress
from catchment.model.refusal import Refusal
from catchment.model.sessions import Held
from catchment.model.table import TableId
from catchment.model.throttle import Throttled
from catchment.schema.existence import Existence
from catchment.state.notes import Trouble

_log = logging.getLogger(__name__)
T = TypeVar("T")


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
        """From the clock's time of the cut to the commit: how old the lake was when the epoch became readable. Of a
        shard that was away: since its rows stand.
        """
        return (self.commit.time_us - self.manifest.as_of_us) / 1e6


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
    `progressed`: once a second, when there is an epoch. `leased`: when the run holds the lease, with its fence.
    `began`: the manifest from which it goes on. `settled`: behind each settle, the tables whose changes it took.
    `answered`: orders with their answers. `noticed`: what a notice tells, whether the feed file asks for notices or
    not. `held`: when that changes how many sessions the run has, or it waits for some.
    """

    doing: Callable[[str], None] = _ignore
    committed: Callable[[Report], None] = _ignore
    rested: Callable[[Rest], None] = _ignore
    in_trouble: Callable[[tuple[Trouble, ...]], None] = _ignore
    throttled: Callable[[tuple[Throttled, ...]], None] = _ignore
    progressed: Callable[[Progress], None] = _ignore
    leased: Callable[[int], None] = _ignore
    began: Callable[[Manifest], None] = _ignore
    settled: Callable[[Collection[TableId]], None] = _ignore
    answered: Callable[[tuple[Kept, ...]], None] = _ignore
    noticed: Callable[[tuple[NotifyEvent, str]], None] = _ignore
    held: Callable[[Held], None] = _ignore


NOBODY = Observer()


def unfailing(observer: Observer) -> Observer:
    """The same for those who call it in the middle of what they do: a call that fails is logged, and raises nothing."""

    def guarded(call: Callable[[T], None]) -> Callable[[T], None]:
        def safe(told: T) -> None:
            try:
                call(told)
            except Exception as error:
                _log.warning("telling what a run does failed, and the feed goes on", exc_info=error)

        return safe

    return replace(
        observer,
        doing=guarded(observer.doing),
        leased=guarded(observer.leased),
        answered=guarded(observer.answered),
        noticed=guarded(observer.noticed),
        held=guarded(observer.held),
    )
