"""The order in which batches bring what aligned shards told: pure, by made-up times."""

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from catchment.model.cut import Cut
from catchment.serve.stream.alignment import THRESHOLD_SECONDS
from catchment.serve.stream.spans import spans
from catchment.serve.stream.turn import ShardTurn, Turn
from catchment.serve.stream.vgtid import StreamCut
from tests.layers.serve.stream.test_alignment import STATE, told

SEALED = replace(STATE, sealed=STATE.position.at)

logs = st.lists(st.lists(st.integers(0, 5), max_size=30), min_size=1, max_size=4)


def turn_of(times: list[list[int]], ahead: list[float] | None) -> Turn:
    shards = [f"s{number}" for number in range(len(times))]
    stands = StreamCut(Cut(1, 0, dict.fromkeys(shards, SEALED)))
    turns = [ShardTurn(shard, told(*mine)) for shard, mine in zip(shards, times, strict=True)]
    return Turn(stands, turns, ahead=dict(zip(shards, ahead, strict=True)) if ahead else None)


@settings(max_examples=60)
@given(logs, st.data())
def test_each_transaction_comes_once_and_in_time(steps: list[list[int]], data: st.DataObject) -> None:
    times = [list(accumulate(one, initial=1000)) for one in steps]
    ahead = data.draw(st.lists(st.floats(-50, 50), min_size=len(times), max_size=len(times)))
    order = [
        (span.shard, ordinal)
        for span in spans(turn_of(times, ahead))
        for ordinal in range(span.begin, min(span.end, len(times[int(span.shard[1:])])))
    ]
    for number, log in enumerate(times):
        assert [ordinal for shard, ordinal in order if shard == f"s{number}"] == list(range(len(log)))
    left = [0] * len(times)
    for shard, ordinal in order:
        mine = int(shard[1:])
        left[mine] += 1
        at = times[mine][ordinal] - ahead[mine]
        waiting = [
            times[other][begin] - ahead[other]
            for other, begin in enumerate(left)
            if other != mine and begin < len(times[other])
        ]
        assert all(at - one <= THRESHOLD_SECONDS for one in waiting)


def test_shards_that_are_not_aligned_are_told_whole() -> None:
    found = list(spans(turn_of([[1, 9], [5]], None)))
    assert [(span.shard, span.begin) for span in found] == [("s0", 0), ("s1", 0)]
    assert all(span.end > 1 for span in found)
