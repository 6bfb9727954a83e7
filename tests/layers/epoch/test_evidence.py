"""Rows that were SELECTed in front of a cut are those of the cut, where the evidence says that they count.

The mistakes are those of docs/decisions/2026-11-25-strategies.md: each makes some of the same random runs wrong.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pytest

from catchment.epoch.evidence import Evidence, Marks, SnapshotAt
from catchment.epoch.xa import commits, hidden_from, prepared_after
from catchment.model.position import GtidList, LogOffset, Position, Server, reaches
from catchment.model.shard import ShardState
from catchment.model.strategy import Strategy
from catchment.rewind.states import in_commit_order, rewound, states_at
from tests.layers.epoch.staged_source import SCHEMA, Rows, Source, place

RUNS = 1500
SERVER = Server(1, "here", 3306)


class Trial(NamedTuple):
    """A copy of all rows by one strategy: what it made of them at a cut, and what they were there."""

    counts: bool
    made: Rows
    source: Rows
    dropped: int


class Reading(NamedTuple):
    source: Source
    state: ShardState
    selected: Rows
    evidence: Evidence


def read_in_front(dice: random.Random, strategy: Strategy) -> Reading:
    """An earlier cut, then the SELECT as the strategy brackets it."""
    source = Source(dice)
    source.steps(12)
    state = standing(source)
    source.steps(6)
    if strategy is Strategy.SNAPSHOT:
        # Its place may lie behind what it shows.
        at = place(len(source.log))
        selected = dict(source.visible)
        source.steps(6)
        return Reading(source, state, selected, SnapshotAt(at))
    source.mark("low")
    listed = source.listed
    source.steps(4)
    selected = dict(source.visible)
    source.steps(4)
    source.mark("high")
    return Reading(source, state, selected, Marks("low", "high", listed))


def standing(source: Source) -> ShardState:
    """The shard at a cut: what is sealed lies in front of the first group that is not visible."""
    cut = len(source.log)
    first = min(
        (number for number, one in enumerate(source.log) if any(one is held for held in source.held)),
        default=cut,
    )
    known = prepared_after("s", (), source.xa_groups(0, cut), place(0))
    hidden = hidden_from(known, source.listed)
    sealed = place(first) if hidden is None or reaches(hidden, place(first)) else hidden
    prepared = prepared_after("s", (), source.xa_groups(0, cut), sealed)
    return ShardState(Position(place(cut), 1, SERVER, GtidList(), prepared=prepared), sealed)


def tried(seed: int, strategy: Strategy, mistake: str = "") -> Trial:
    dice = random.Random(seed)
    reading = read_in_front(dice, strategy)
    source, state, evidence = reading.source, reading.state, reading.evidence
    source.steps(5)
    cut = dice.randint(number_of(state.position.at), len(source.log))
    if mistake == "XA RECOVER not asked" and isinstance(evidence, Marks):
        evidence = replace(evidence, listed=())
    floor = state.position.at if mistake == "the log from the last cut" else evidence.floor(state)
    assert floor is not None
    begin = number_of(floor)
    met = {
        one.mark: number - begin
        for number, one in enumerate(source.log[:cut])
        if one.mark and number >= begin
    }
    counts = not evidence.why_not(place(cut), met)
    if mistake == "a cut in front of the SELECT":
        counts = True
    ends = commits("s", state.position.prepared, source.xa_groups(begin, cut))
    earlier = {number_of(one.start): ordinal for one, ordinal in ends.earlier}
    images = in_commit_order(source.images(begin, cut, earlier), ends.moves)
    states = states_at(images, ("id",), cut - begin)
    rows = table(reading.selected)
    if mistake == "overlaps kept":
        states = states.filter(
            pa.array([key not in reading.selected for key in states["id"].to_pylist()], pa.bool_())
        )
    made = rewound(rows, states, ("id",)).to_pylist()
    dropped = sum(key in reading.selected for key in states["id"].to_pylist())
    return Trial(counts, {row["id"]: row["v"] for row in made}, source.rows_at(cut), dropped)


def number_of(at: LogOffset) -> int:
    return next(number for number in range(1000) if place(number) == at)


def table(rows: Mapping[int, int]) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "v": value} for key, value in rows.items()], SCHEMA)


def wrong(strategy: Strategy, mistake: str = "") -> tuple[int, int, int]:
    """Of the runs those that count, those that count and are wrong, and rows that the log took the place of."""
    trials = [one for seed in range(RUNS) if (one := tried(seed, strategy, mistake)).counts]
    return len(trials), sum(one.made != one.source for one in trials), sum(one.dropped for one in trials)


@pytest.mark.parametrize("strategy", [Strategy.WATERMARK, Strategy.SNAPSHOT])
def test_rows_that_count_are_those_of_the_cut(strategy: Strategy) -> None:
    counted, faults, dropped = wrong(strategy)
    assert faults == 0
    assert RUNS / 10 < counted < RUNS
    assert dropped > RUNS / 10


@pytest.mark.parametrize(
    ("strategy", "mistake"),
    [
        (Strategy.WATERMARK, "overlaps kept"),
        (Strategy.WATERMARK, "a cut in front of the SELECT"),
        (Strategy.WATERMARK, "XA RECOVER not asked"),
        (Strategy.SNAPSHOT, "overlaps kept"),
        (Strategy.SNAPSHOT, "a cut in front of the SELECT"),
        (Strategy.SNAPSHOT, "the log from the last cut"),
    ],
)
def test_each_mistake_is_found(strategy: Strategy, mistake: str) -> None:
    _, faults, _ = wrong(strategy, mistake)
    assert faults > 0


def test_marks_count_in_their_order_alone() -> None:
    marks = Marks("low", "high")
    at = place(9)
    assert marks.why_not(at, {"low": 3, "high": 4}) == ""
    assert "low mark" in marks.why_not(at, {"high": 4})
    assert "high mark" in marks.why_not(at, {"low": 3})
    assert "order" in marks.why_not(at, {"low": 4, "high": 3})
    assert "order" in marks.why_not(at, {"low": 4, "high": 4})


def test_a_snapshot_counts_from_its_place_on() -> None:
    before, at, behind = (place(number) for number in (4, 5, 6))
    assert [bool(SnapshotAt(at).why_not(cut, {})) for cut in (before, at, behind)] == [True, False, False]
    other = LogOffset("other.000009", 4)
    assert SnapshotAt(at).why_not(other, {})
