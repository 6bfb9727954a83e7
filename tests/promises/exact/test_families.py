"""Parents go while their children are copied, and while a feed dies and begins again: every epoch is as the servers
showed it."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catchment.model.table import TableId
from catchment.readers.chunk_parents import ChunkParents
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.family import JOURNAL, TABLES, Family, filled, judged
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.manifests import ever_stale, manifests, newest
from tests.promises.exact.steps import Steps, run_here

PARENTS = 30


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has not begun, of tables with rows."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    found.everywhere(*TABLES.values(), f"CREATE TABLE {JOURNAL} (id INT PRIMARY KEY)", *filled(PARENTS))
    return found


def families(steps: Steps) -> dict[str, Family]:
    return {
        shard: Family(server, steps.schema, PARENTS, seed)
        for seed, (shard, server) in enumerate(steps.servers.items())
    }


def test_while_chunks_are_read(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two of three epochs parents go between the cut and the SELECTs."""
    refusals: list[str] = []
    refusing = ChunkParents.refusals

    def noted(parents: ChunkParents, *args: Any) -> dict[TableId, str]:
        found = refusing(parents, *args)
        refusals.extend(found.values())
        return found

    monkeypatch.setattr(ChunkParents, "refusals", noted)
    steps.set(copy={"chunk_rows_max": 20, "group_time": "0s"})
    writers, plans = families(steps), itertools.count(1)

    def change(place: Fault) -> None:
        if place is Fault.AFTER_PLAN and next(plans) % 3:
            for one in writers.values():
                one.transact()

    with FeedRun(steps.feed, change) as run:
        run.wait("all is copied", lambda done: done[-1].cut.copied and not done[-1].stale)
    steps.run()
    counts = judged(steps.feed, steps.schema, writers)
    assert counts["copying"]
    assert counts["whole"]
    # A server that logs the children has no keys to follow.
    assert bool(refusals) is any(state.keys for state in newest(steps).cut.shards.values())


def test_when_a_feed_dies(steps: Steps) -> None:
    steps.run()
    writers = families(steps)
    for fault in (Fault.AFTER_PLAN, Fault.AFTER_MANIFEST, Fault.BETWEEN_APPLIES, Fault.AFTER_EPOCH_ROW):
        for one in writers.values():
            for _ in range(4):
                one.transact()
        steps.die_again_and_again(fault, 2)
    steps.run()
    assert judged(steps.feed, steps.schema, writers)["whole"]
    assert not ever_stale(manifests(steps))
