"""Parents go while their children are copied, and while a feed dies and begins again: every epoch is as the servers
showed it."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catchment.model.table import TableId
from catchment.readers.chunk_parents import ChunkParents
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.family import JOURNAL, TABLES, Family, filled, judged
from tests.promises.exact.feedrun import FeedRun, Thread
from tests.promises.exact.steps import Steps, run_here

PARENTS = 30
# Some meet a chunk, and on a slow machine, too, chunks come between others.
PAUSES_SECONDS = (0.2, 0.6, 3.0)


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


@pytest.mark.wide
def test_while_chunks_are_read(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    refusals: list[str] = []
    refusing = ChunkParents.refusals

    def noted(parents: ChunkParents, *args: Any) -> dict[TableId, str]:
        found = refusing(parents, *args)
        refusals.extend(found.values())
        return found

    monkeypatch.setattr(ChunkParents, "refusals", noted)
    steps.set(copy={"chunk_rows_max": 20, "group_time": "0s"})
    writers, rng = families(steps), random.Random(1)

    def write() -> None:
        for one in writers.values():
            one.transact()
        time.sleep(rng.choice(PAUSES_SECONDS))

    thread = Thread("writers", write)
    with FeedRun(steps.feed) as run:
        run.wait_for_epochs(1)
        thread.start()
        run.wait("all is copied", lambda done: done[-1].cut.copied and not done[-1].stale)
        run.wait_for_epochs(len(run.epochs) + 5)
        thread.stop()
        run.wait_for_log(steps.servers)
    counts = judged(steps.feed, steps.schema, writers)
    assert counts["copying"]
    assert counts["whole"]
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    # A server that logs the children has no keys to follow.
    assert bool(refusals) is any(state.keys for state in row.manifest.cut.shards.values())


@pytest.mark.wide
def test_when_a_feed_dies(steps: Steps) -> None:
    steps.run()
    writers = families(steps)
    for fault in Fault:
        for one in writers.values():
            for _ in range(5):
                one.transact()
        steps.die_again_and_again(fault, 3)
    steps.run()
    assert judged(steps.feed, steps.schema, writers)["whole"]
    rows = EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()
    assert not any(row.manifest.stale for row in rows)
