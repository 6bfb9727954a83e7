"""What the page shows of a run: gathered from what the run tells, at any time, without asking the run."""

from dataclasses import replace

import msgspec

from catchment import world
from catchment.config import Feed
from catchment.model.epoch import Manifest
from catchment.model.progress import Progress
from catchment.model.version import __version__
from catchment.page.health import Health, Readiness
from catchment.page.history import History, Series
from catchment.page.kept import Kept
from catchment.state.notes import Trouble
from catchment.watch.report import Observer, Report, Rest
from catchment.watch.status import Status


class Shown(msgspec.Struct, frozen=True):
    """One look at a run, as `/status.json` gives it. `fault`: why the run is not healthy, else empty. `unready`: why
    some tables of the lake are not as of now. `addresses`: of shards. `status` is that of the state store;
    `status_fault` says why there is no newer one. `window_us` is that of the newest cut. Times are microseconds since
    1970."""

    feed: str
    version: str
    time_us: int
    fault: str
    unready: tuple[str, ...]
    addresses: dict[str, str]
    status: Status | None
    status_fault: str
    progress: Progress | None
    window_us: int | None
    history: Series


class Board:
    """Hears what a run tells its observer. Any thread may look."""

    def __init__(self, feed: Feed, kept: Kept) -> None:
        self._feed = feed.name
        self._addresses = {shard.name: f"{shard.host}:{shard.port}" for shard in feed.source.shards}
        self._kept = kept
        self._health = Health(feed.epoch.interval)
        self._readiness = Readiness()
        self._history = History()
        self._lock = world.lock()
        self._progress: Progress | None = None
        self._window_us: int | None = None
        self._troubles: tuple[Trouble, ...] = ()

    def before(self, observer: Observer) -> Observer:
        """An observer that tells this board first."""

        def doing(what: str) -> None:
            self._health.doing(what)
            observer.doing(what)

        def began(standing: Manifest) -> None:
            self._readiness.stands_at(standing)
            observer.began(standing)

        def committed(report: Report) -> None:
            self._committed(report)
            observer.committed(report)

        def rested(rest: Rest) -> None:
            self._health.turned()
            self._readiness.rested(rest.absent.keys())
            observer.rested(rest)

        def in_trouble(troubles: tuple[Trouble, ...]) -> None:
            self._troubles = troubles
            self._readiness.in_trouble(troubles)
            observer.in_trouble(troubles)

        def progressed(progress: Progress) -> None:
            self._progressed(progress)
            observer.progressed(progress)

        return replace(
            observer,
            doing=doing,
            began=began,
            committed=committed,
            rested=rested,
            in_trouble=in_trouble,
            progressed=progressed,
        )

    def fault(self) -> str:
        """Why the run is not healthy; empty where it is."""
        return self._health.fault(self._troubles)

    def unready(self) -> tuple[str, ...]:
        """Why not every table of the lake is as of now; empty where each is."""
        fault = self.fault()
        return (fault,) if fault else self._readiness.reasons()

    def shown(self) -> Shown:
        """All there is to see now."""
        told = self._kept.newest()
        with self._lock:
            series = self._history.series()
        return Shown(
            self._feed,
            __version__,
            world.now_us(),
            self.fault(),
            self.unready(),
            self._addresses,
            told.status,
            told.fault,
            self._progress,
            self._window_us,
            series,
        )

    def _committed(self, report: Report) -> None:
        self._health.turned()
        manifest = report.manifest
        self._readiness.stands_at(manifest)
        with self._lock:
            self._window_us = manifest.window_us
            self._history.count(sum(delta.copied for delta in manifest.deltas), manifest.changes)

    def _progressed(self, progress: Progress) -> None:
        with self._lock:
            self._progress = progress
            self._history.look(progress.time_us, max((log.lag_seconds for log in progress.logs), default=0.0))
