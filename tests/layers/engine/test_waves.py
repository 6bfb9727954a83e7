"""Tasks that would have more sessions of a server than the run has come one after another."""

from collections.abc import Sequence
from typing import Any

import pytest

from catchment.engine.waves import InWaves, waves
from tests.layers.engine.test_near import chunk, segment
from tests.world.engines import Here

S, C, LAKE = segment(1), chunk(), object()


@pytest.mark.parametrize(
    ("tasks", "room", "expected"),
    [
        ([], 2, []),
        ([S, C, C], 5, [[0, 1, 2]]),
        ([S, C, C], 4, [[0, 1], [2]]),
        ([S, C, C], 3, [[0, 1], [2]]),
        ([S, C, C], 2, [[0], [1], [2]]),
        ([C, C, S], 3, [[0, 2], [1]]),
        ([C], 1, [[0]]),
        ([LAKE] * 9, 2, [[*range(9)]]),
        ([C, LAKE, C], 2, [[0, 1], [2]]),
    ],
)
def test_waves(tasks: Sequence[Any], room: int, expected: list[list[int]]) -> None:
    assert waves(tasks, lambda shard: room) == expected


def test_receipts_come_in_the_order_of_the_tasks() -> None:
    here = Here()
    engine = InWaves(here, lambda shard: 3)
    tasks = [chunk(), segment(7), chunk(), segment(8)]
    assert engine.each(type, tasks) == [type(task) for task in tasks]
    assert [len(done) for done in here.done] == [2, 2]
    assert engine.each(type, []) == []
