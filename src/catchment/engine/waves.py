"""An engine that reads each server with no more sessions than a run holds there: what is too much comes in waves."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from catchment.engine.port import Engine
from catchment.epoch.work import BirthsTask, SegmentTask
from catchment.model.sessions import GROUP, SEGMENT
from catchment.model.source import Endpoint

_Task = TypeVar("_Task")
_Receipt = TypeVar("_Receipt")


class InWaves:
    """The engine behind it, with tasks of one shard at a time for which there is `room`, in sessions."""

    def __init__(self, engine: Engine, room: Callable[[str], int]) -> None:
        self._engine = engine
        self._room = room

    def each(self, work: Callable[[_Task], _Receipt], tasks: Sequence[_Task]) -> list[_Receipt]:
        """As the port has it."""
        found: dict[int, _Receipt] = {}
        for wave in waves(tasks, self._room):
            receipts = self._engine.each(work, [tasks[number] for number in wave])
            found.update(zip(wave, receipts, strict=True))
        return [found[number] for number in range(len(tasks))]

    def check(self) -> None:
        """As the port has it."""
        self._engine.check()

    def cancel(self) -> None:
        """As the port has it."""
        self._engine.cancel()

    def rest(self) -> None:
        """As the port has it."""
        self._engine.rest()

    def close(self) -> None:
        """As the port has it."""
        self._engine.close()


def waves(tasks: Sequence[object], room: Callable[[str], int]) -> list[list[int]]:
    """The numbers of tasks that may run at the same time, each in the first wave that has room for it. One that needs
    more than there is has a wave without others of its shard."""
    found: list[list[int]] = []
    used: list[dict[str, int]] = []
    for number, task in enumerate(tasks):
        endpoint = getattr(task, "endpoint", None)
        if not isinstance(endpoint, Endpoint):  # it reads the lake alone
            shard, needs, limit = "", 0, 0
        else:
            shard, needs = endpoint.shard, SEGMENT if isinstance(task, SegmentTask | BirthsTask) else GROUP
            limit = max(room(shard), needs)
        place = next((at for at, one in enumerate(used) if one.get(shard, 0) + needs <= limit), len(used))
        if place == len(used):
            used.append({})
            found.append([])
        used[place][shard] = used[place].get(shard, 0) + needs
        found[place].append(number)
    return found
