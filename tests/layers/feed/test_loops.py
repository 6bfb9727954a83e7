"""Where one loop of a run ends, and another one goes on."""

from types import SimpleNamespace
from typing import Any

import pytest

from catchment import world
from catchment.feed.loops import Loops, Turns
from catchment.model.errors import LogRenamed

TURNS = Turns(lambda manifest: True, lambda manifest: None, None)


class Clock:
    """A clock that has shown the ends of names, of the logs that `renamed` names."""

    number = 7

    def __init__(self, *renamed: str) -> None:
        self._renamed = renamed
        self.stopped = False

    def must_be_whole(self, positions: dict[str, object]) -> None:
        if positions.keys() & set(self._renamed):
            raise LogRenamed("its log goes on in files of another name")

    def stop(self) -> None:
        self.stopped = True


def loops(stop: world.Event, *clocks: Clock) -> tuple[Loops, list[str], Any]:
    """Loops that catch up at once, the names of where each began, and where the first one does."""
    began, later = list[str](), list(clocks)

    def loop_of(standing: str, clock: Clock) -> Any:
        began.append(standing)
        last = SimpleNamespace(cut=SimpleNamespace(positions={"-80": None}), name=standing)
        return SimpleNamespace(run=lambda *_: last, standing=standing, committed=last)

    commands: Any = SimpleNamespace(next=lambda manifest: None, answer=lambda manifest: None)
    again: Any = SimpleNamespace(first=None, standing="under the next name")
    first: Any = SimpleNamespace(first=None, standing="under the old name", again=lambda *_: again)
    made: Any = Loops({}, commands, lambda _: later.pop(0), loop_of, stop)  # type: ignore[arg-type,return-value]
    return made, began, first


@pytest.mark.parametrize("stopped", [False, True])
def test_a_run_that_has_caught_up_goes_on_under_the_next_name_of_a_log(stopped: bool) -> None:
    """Unless it is to end now."""
    stop = world.event()
    first, second = Clock("-80"), Clock()
    made, began, start = loops(stop, second)
    if stopped:
        stop.set()
    last: Any = made.run(start, first, TURNS)  # type: ignore[arg-type]
    assert began == ["under the old name", "under the next name"][: 1 if stopped else 2]
    assert last.name == began[-1]
    assert first.stopped
    assert second.stopped is not stopped
