"""Which shards wait for which: pure, by made-up clocks."""

import random
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from catchment.model.position import GtidList, LogOffset, Position, Server
from catchment.model.shard import ShardState
from catchment.serve.stream.advance import Told
from catchment.serve.stream.alignment import THRESHOLD_SECONDS, Alignment

STATE = ShardState(Position(LogOffset("b.000001", 4), 1, Server(1, "h", 3306), GtidList(())))
NONE, SOME = pa.table({"ordinal": pa.array([], pa.int64())}), pa.table({"ordinal": [0]})


def told(time: int = 0, *, held: int | None = None, shown: bool = True) -> Told:
    return Told(STATE, shown, SOME if time else NONE, (), (), (), redefines=False, event_time=time, held=held)


class Shard:
    """A log of times, and how much of it its server shows at a moment: what is `lag` seconds old."""

    def __init__(self, times: Sequence[int], lag: float, per_turn: int) -> None:
        self.times, self.lag, self.per_turn = list(times), lag, per_turn
        self.at = 0

    def told(self, now: float, until: int | None) -> tuple[Told | None, list[int]]:
        seen = [time for time in self.times if time + self.lag <= now]
        if self.at == len(seen):
            return None, []
        new = seen[self.at : self.at + self.per_turn]
        later = [time for time in new if until is not None and time > until]
        held = later[0] if later else None
        new = new[: new.index(held)] if held is not None else new
        self.at += len(new)
        shown = self.at == len(seen) and held is None
        return told(new[-1] if new else 0, held=held, shown=shown), new


def turned(shards: Mapping[str, Shard], seconds: int) -> list[tuple[float, str, int]]:
    """All transactions in the order in which a stream tells them: when, of which shard, and their times."""
    align, found = Alignment(dict.fromkeys(shards, 0.0)), []
    for turn in range(seconds * 10):
        now = 1000 + turn / 10
        until = {name: align.until(name, now) for name in shards}
        for name, shard in shards.items():
            said, times = shard.told(now, until[name])
            align.took(name, said, now)
            found += [(now, name, time) for time in times]
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


def test_a_silent_shard_and_a_quiet_one_hold_nobody_back() -> None:
    align = Alignment({"a": 0.0, "silent": 0.0, "quiet": 0.0})
    align.took("silent", told(900, shown=False), 1000.0)
    align.took("quiet", None, 1000.0)
    assert align.until("a", 1000.0) == 0, "it may not go before all have said how far they are"
    align.took("a", told(held=1000), 1000.0)
    assert align.until("a", 1000.0) == 902
    assert align.until("a", 1009.0) == 902
    assert align.until("a", 1011.0) is None


def test_clocks_of_servers_are_taken_out() -> None:
    align = Alignment({"a": 100.0, "b": -50.0})
    align.took("a", None, 1000.0)
    align.took("b", told(850, shown=False), 1000.0)  # 900 by our clock
    assert align.until("a", 1000.0) == 1002
    assert align.until("b", 1000.0) == 852


def test_what_is_dated_into_the_future_waits_for_nobody() -> None:
    align = Alignment({"a": 0.0, "b": 0.0})
    align.took("a", told(held=2**31), 1000.0)
    align.took("b", None, 1000.0)
    assert align.until("a", 1000.0) is None
