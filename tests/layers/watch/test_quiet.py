"""What a run writes of its progress comes to rest with it: a copy that is paused costs the state store nothing."""

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from catchment import world
from catchment.config import NotifyConfig
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import Manifest
from catchment.model.progress import Progress
from catchment.model.shard import Copy, ShardState
from catchment.model.strategy import Strategy
from catchment.state.journal import Journal
from catchment.state.lease import hold
from catchment.state.store import Store
from catchment.watch.course import Course
from catchment.watch.notify import Notifier
from catchment.watch.troubles import Troubles
from catchment.watch.vitals import Vitals
from catchment.watch.watch import Watch
from tests.layers.watch.test_course import T
from tests.world.records import manifest
from tests.world.sim.scheduler import Process, SimWorld

COPIED_SECONDS, PAUSED_SECONDS = 60, 600


def standing(copy: Copy) -> Manifest:
    """The epoch of a shard with one table, which is being copied."""
    base = manifest(1)
    known = base.cut.positions["-80"]
    state = ShardState(known, known.at, (replace(copy, table=base.shapes[0].table),))
    return replace(base, cut=Cut(base.epoch, base.time_us, {"-80": state}), deltas=())


def written(directory: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], list[float]]:
    """When progress was written while rows came, and when while the copy was paused behind that."""
    moments: list[float] = []

    def note(journal: Journal, progress: Progress) -> None:
        moments.append(world.steady_seconds())

    monkeypatch.setattr(Journal, "put_progress", note)

    def copy() -> None:
        with closing(Store.open(f"sqlite:///{directory}/state.db", "shop")) as store, hold(store) as lease:
            course, stop = Course(), world.event()
            made = Copy(T, (1,), (100_000,), rows=1, rows_expected=50_000)
            at = standing(made).cut.positions["-80"].at
            course.begin(standing(made), lambda: Tick(1, world.now_us(), 0, {"-80": at}), {})
            journal = Journal(store, lease.fence, Strategy.REWIND)
            vitals, notifier = Vitals("shop", ["-80"]), Notifier("shop", NotifyConfig())
            with Watch(journal, vitals, Troubles(), notifier, course, file=None, stop=stop):
                for second in range(1, COPIED_SECONDS):
                    world.sleep(1.0)
                    made = Copy(T, (2000 * second,), (1_000_000,), rows=1000 * second, rows_expected=50_000)
                    course.committed(standing(made), ())
                course.committed(standing(replace(made, paused=True)), ())
                began.append(world.steady_seconds())
                world.sleep(PAUSED_SECONDS)

    began: list[float] = []
    simulated = SimWorld(1)
    with world.instead(simulated):
        simulated.run(simulated.spawn(Process("run"), "loop", copy))
    (paused,) = began
    return [one for one in moments if one <= paused], [one for one in moments if one > paused]


def test_a_paused_copy_is_not_written_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying, paused = written(tmp_path, monkeypatch)
    assert len(copying) >= 10, "every five seconds while rows come"
    assert 1 <= len(paused) <= 2
