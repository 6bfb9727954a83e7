"""Groups are summed up alike, few at a time or many."""

import random
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pytest

from catchment.model.position import GroupKind, LogOffset
from catchment.source import groups
from catchment.source.groups import Tally
from catchment.wire.log.groups import SCHEMA

FILES = ["b.000001", "b.000002"]
KINDS = len(GroupKind)


def log(rng: random.Random, *, mysql: bool) -> list[dict[str, Any]]:
    """Some groups of one log, in their order."""
    found = []
    file, at, sequence, time = 0, 4, rng.randrange(1, 5), 1000
    for ordinal in range(rng.randrange(1, 12)):
        if file == 0 and rng.random() < 0.1:
            file, at = 1, 4
        end = at + rng.randrange(30, 300)
        sequence += rng.randrange(1, 3)
        time += rng.randrange(-1, 3)
        named = mysql and rng.random() < 0.8
        found.append(
            {
                "ordinal": ordinal,
                "file": file,
                "start": at,
                "end": end,
                "domain": 0 if mysql else rng.randrange(2),
                "server_id": 1,
                "sequence": sequence,
                "timestamp": time,
                "kind": rng.randrange(KINDS),
                "uuid": rng.choice((b"a" * 16, b"b" * 16)) if named else None,
                "tag": rng.choice(("", "x")) if named else None,
            }
        )
        at = end
    return found


def summed(batches: list[pa.RecordBatch], tally: Tally) -> tuple[dict[str, Any], list[int]]:
    taken = [tally.add(batch, FILES).num_rows for batch in batches]
    return asdict(tally), taken


@pytest.mark.parametrize("seed", range(60))
def test_few_and_many_come_to_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    found = log(rng, mysql=seed % 2 == 0)
    cuts = sorted(rng.sample(range(len(found) + 1), min(2, len(found))))
    parts = [found[a:b] for a, b in zip([0, *cuts], [*cuts, len(found)], strict=True)]
    batches = [pa.RecordBatch.from_pylist(part, SCHEMA) for part in parts]
    epoch = rng.choice((None, LogOffset(FILES[0], 300)))
    budget, until = rng.choice((None, 200, 900)), rng.choice((None, 1003))
    few = summed(batches, Tally(epoch, budget, until))
    monkeypatch.setattr(groups, "_FEW", -1)
    assert few == summed(batches, Tally(epoch, budget, until))


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("seed", range(60))
def test_only_the_group_that_comes_next_is_held_back(
    seed: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the budget ends in front of a group that was written later, that one does not come next."""
    monkeypatch.setattr(groups, "_FEW", few)
    rng = random.Random(seed)
    found = log(rng, mysql=True)
    tally = Tally(None, budget=rng.randrange(1, 1500), until=1000 + rng.randrange(8))
    _, (taken,) = summed([pa.RecordBatch.from_pylist(found, SCHEMA)], tally)
    before = sum(group["end"] - group["start"] for group in found[:taken])
    next_time = found[taken]["timestamp"] if taken < len(found) else None
    is_held = next_time is not None and before < tally.budget and next_time > tally.until
    assert tally.held == (next_time if is_held else None)
    assert tally.full or taken == len(found)
