"""Parents go while their children are copied, and while a feed dies and begins again: every epoch is as the servers
showed it."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catchment.cli.main import execute
from catchment.readers.chunk_family import ChunkFamily, Settled
from catchment.source.select import select_chunk
from catchment.source.session import Session
from catchment.state.faults import Fault
from tests.conftest import Shards
from tests.promises.exact.family import JOURNAL, TABLES, Family, filled, judged
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.manifests import ever_stale, manifests
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


@pytest.mark.promise("children are copied and compared while their parents go all the time")
def test_while_chunks_are_read(
    steps: Steps, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parents go between the SELECTs of a group, between these and the cut, and after the cut; and no chunk of their
    children, or of the children of these, is refused for that."""
    refused: list[str] = []
    settling, selecting = ChunkFamily.settled, select_chunk
    writers, selected = families(steps), itertools.count(1)

    def noted(family: ChunkFamily, *args: Any) -> Settled:
        found = settling(family, *args)
        refused.extend(found.refused.values())
        return found

    def while_parents_go(session: Session, *args: Any) -> pa.Table:
        rows = selecting(session, *args)
        if next(selected) % 3:
            writers[session.endpoint.shard].transact()
        return rows

    def change(place: Fault) -> None:
        if place in (Fault.AFTER_STAGE, Fault.AFTER_PLAN):
            for one in writers.values():
                one.transact()

    monkeypatch.setattr(ChunkFamily, "settled", noted)
    monkeypatch.setattr("catchment.readers.selected.select_chunk", while_parents_go)
    steps.set(copy={"chunk_rows_max": 20, "group_time": "0s"})
    with FeedRun(steps.feed, change) as run:
        run.wait("all is copied", lambda done: done[-1].cut.copied and not done[-1].stale)
    steps.run()
    counts = judged(steps.feed, steps.schema, writers)
    assert counts["copying"]
    assert counts["whole"]
    assert execute(["verify", str(steps.file)]) == 0, capsys.readouterr().out
    steps.run()
    steps.everywhere("SET sql_log_bin = 0", "UPDATE c SET v = v + 100")
    assert execute(["verify", str(steps.file)]) == 1, "what no foreign key did is found"
    # Of a tree rows may have come below others that went in front of the SELECTs.
    assert not [why for why in refused if f"{steps.schema}.t: " not in why]


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
