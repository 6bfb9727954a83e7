"""Which shards wait for which: pure, by made-up clocks."""

import heapq
import random
from collections.abc import Mapping, Sequence
from itertools import accumulate

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catchment.model.position import GtidList, LogOffset, Position, Server
from catchment.model.shard import ShardState
from catchment.serve.changes.rows import GroupFacts
from catchment.serve.stream.advance import Told
from catchment.serve.stream.alignment import THRESHOLD_SECONDS, Alignment
from catchment.wire.log.groups import SCHEMA

STATE = ShardState(Position(LogOffset("b.000001", 4), 1, Server(1, "h", 3306), GtidList(())))
# Bytes of a transaction.
BYTES = 100


def told(*times: int, held: int | None = None, shown: bool = True) -> Told:
    groups = GroupFacts()
    for ordinal, time in enumerate(times):
        group = {"ordinal": ordinal, "timestamp": time, "sequence": 0}
        groups.add(pa.RecordBatch.from_pylist([group], SCHEMA))
    last = times[-1] if times else 0
    return Told(
        STATE,
        shown,
        groups,
        (),
        (),
        (),
        redefines=False,
        event_time=last,
        held=held,
        log_bytes=BYTES * len(times),
    )


class Shard:
    """A log of times, and how much of it its server shows at a moment: what is `lag` seconds old. `per_turn`: what fits
    its budget. `away`: turns in which it cannot be read."""

    def __init__(
        self, times: Sequence[int], lag: float, per_turn: int, away: frozenset[int] = frozenset()
    ) -> None:
        self.times, self.lag, self.per_turn, self.away = list(times), lag, per_turn, away
        self.at = 0

    def read(self, now: float, until: int | None) -> tuple[Told | None, list[int]]:
        """What it tells of its log from where it stands."""
        seen = [time for time in self.times if time + self.lag <= now]
        if self.at == len(seen):
            return None, []
        new = seen[self.at : self.at + self.per_turn]
        later = [time for time in new if until is not None and time > until]
        held = later[0] if later else None
        new = new[: new.index(held)] if held is not None else new
        shown = self.at + len(new) == len(seen) and held is None
        return told(*new, held=held, shown=shown), new


def aligned(shards: Mapping[str, Shard], ahead: Mapping[str, float] | None = None) -> Alignment:
    return Alignment(
        ahead or dict.fromkeys(shards, 0.0), BYTES * max(shard.per_turn for shard in shards.values())
    )


def taken(align: Alignment, shards: Mapping[str, Shard], now: float, turn: int) -> list[tuple[str, int]]:
    """What a turn tells, in order."""
    there = [name for name, shard in shards.items() if turn not in shard.away]
    until = align.until(there, now)
    read = {name: shards[name].read(now, until[name]) for name in there}
    while over := align.over({name: one for name, (one, _) in read.items()}, now):
        read |= {name: shards[name].read(now, limit) for name, limit in over.items()}
    align.took({name: one for name, (one, _) in read.items()}, now)
    for name, (_, times) in read.items():
        shards[name].at += len(times)
    logs = [[(time, name) for time in times] for name, (_, times) in read.items()]
    # By heads, as they come: no log has to be in order.
    return [(name, time) for time, name in heapq.merge(*logs)]


def turned(shards: Mapping[str, Shard], seconds: int) -> list[tuple[float, str, int]]:
    """All transactions in the order in which a stream tells them: when, of which shard, and their times."""
    align, found = aligned(shards), []
    for turn in range(seconds * 10):
        now = 1000 + turn / 10
        found += [(now, name, time) for name, time in taken(align, shards, now, turn)]
    return found


def skews(found: Sequence[tuple[float, str, int]], shards: Mapping[str, Shard]) -> Sequence[float]:
    """Of each transaction how far it is ahead of the oldest one that another shard has still to tell."""
    rest = {name: list(shard.times) for name, shard in shards.items()}
    worst = []
    for now, name, time in found:
        rest[name].remove(time)
        waiting = [left[0] for other, left in rest.items() if other != name and left and left[0] <= now]
        worst.append(max((time - one for one in waiting), default=0))
    return worst


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_a_backlog_is_told_side_by_side(count: int) -> None:
    """Shards of very different rates, all of an hour ago: none gets ahead, and all come to their ends."""
    rng = random.Random(count)
    shards = {
        f"s{n}": Shard(sorted(rng.sample(range(400, 900), 30 + 40 * n)), 0, 1 + 3 * n) for n in range(count)
    }
    found = turned(shards, 120)
    assert len(found) == sum(len(shard.times) for shard in shards.values()), "a stream stalled"
    assert max(skews(found, shards)) <= THRESHOLD_SECONDS


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_the_others_wait_for_a_shard_that_lags(count: int) -> None:
    shards = {f"s{n}": Shard(range(1000, 1060), 9 if n == 0 else 0, 50) for n in range(count)}
    found = turned(shards, 80)
    assert len(found) == 60 * count, "a stream stalled"
    settled = [skew for skew, (now, *_) in zip(skews(found, shards), found, strict=True) if now > 1015]
    assert max(settled) <= THRESHOLD_SECONDS


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_a_long_backlog_takes_few_turns(count: int) -> None:
    """A few more than the budget asks for, which are 9: two seconds a turn would be 450."""
    shards = {f"s{n}": Shard(range(100, 1000), 0, 100) for n in range(count)}
    align = aligned(shards)
    turns = 0
    while any(shard.at < len(shard.times) for shard in shards.values()):
        taken(align, shards, 2000, turns)
        turns += 1
    assert turns <= 16


steps = st.lists(st.integers(-3, 40), min_size=1, max_size=60)


backlogs = st.lists(
    st.tuples(steps, st.integers(1, 20), st.frozensets(st.integers(0, 30))), min_size=2, max_size=5
)


@pytest.mark.parametrize("examples", [40, pytest.param(1000, marks=pytest.mark.wide)])
def test_any_backlog_is_told_within_the_threshold(examples: int) -> None:
    settings(max_examples=examples)(given(backlogs)(must_be_told_within_the_threshold))()


def must_be_told_within_the_threshold(made: list[tuple[list[int], int, frozenset[int]]]) -> None:
    """Of times that go back a little as of those that jump, and of shards that are away at times. A transaction that
    is older than one before it in its log cannot come before that: it counts with the time of that."""
    shards = {
        f"s{n}": Shard(list(accumulate(times, initial=1000)), 0, per_turn, away)
        for n, (times, per_turn, away) in enumerate(made)
    }
    now = 10_000.0
    align, found, turn = aligned(shards), [], 0
    while any(shard.at < len(shard.times) for shard in shards.values()):
        found += [(now, name, time) for name, time in taken(align, shards, now, turn)]
        turn += 1
        assert turn < 31 + sum(len(shard.times) for shard in shards.values()), "it stalled"
    for name, shard in shards.items():
        assert [time for _, one, time in found if one == name] == shard.times
    if all(min(times) >= 0 for times, _, _ in made):
        assert max(skews(found, shards)) <= THRESHOLD_SECONDS


def test_a_silent_shard_and_a_quiet_one_hold_nobody_back() -> None:
    align = Alignment({"a": 0.0, "silent": 0.0, "quiet": 0.0}, 1)
    align.took({"silent": told(900, shown=False), "quiet": None}, 1000.0)
    assert align.until(["a"], 1000.0) == {"a": 0}, "it may not go before all have said how far they are"
    align.took({"a": told(held=1000)}, 1000.0)
    assert align.until(["a"], 1000.0) == {"a": 902}
    assert align.until(["a"], 1009.0) == {"a": 902}
    assert align.until(["a"], 1011.0) == {"a": None}


def test_clocks_of_servers_are_taken_out() -> None:
    align = Alignment({"a": 100.0, "b": -50.0}, 1)
    align.took({"a": None, "b": told(850, shown=False)}, 1000.0)  # 900 by our clock
    assert align.until(["a", "b"], 1000.0) == {"a": 1002, "b": 852}


def test_a_shard_that_comes_too_far_for_another_is_read_again() -> None:
    align = Alignment({"a": 100.0, "b": -50.0}, 1)
    turn = {"a": told(1050, 1060), "b": told(850, 851, shown=False)}
    assert align.over(turn, 1000.0) == {"a": 1003}
    assert align.over(turn | {"a": told(1003, held=1050)}, 1000.0) == {}


def test_the_shard_that_is_furthest_behind_goes_on_where_its_times_go_back() -> None:
    align = Alignment({"a": 0.0, "b": 0.0}, 1)
    both = {"a": told(800, 700, shown=False), "b": told(800, 700, shown=False)}
    assert align.over(both, 1000.0) == {"b": 702}
    assert align.over(both | {"b": told(held=800)}, 1000.0) == {}


def test_what_is_dated_into_the_future_waits_for_nobody() -> None:
    align = Alignment({"a": 0.0, "b": 0.0}, 1)
    align.took({"a": told(held=2**31), "b": None}, 1000.0)
    assert align.until(["a"], 1000.0) == {"a": None}
