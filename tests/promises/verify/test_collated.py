"""Verifying tables whose keys only the server can order: as a whole, and yet in SELECTs of bounded size."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from catchment.api.read import read
from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.model.chunk import Chunk
from catchment.model.errors import ServerSaid
from catchment.model.table import TableId
from catchment.readers import selected
from catchment.readers.strays import StrayTask
from catchment.source.select import select_chunk
from catchment.source.session import Session
from tests.promises.exact.steps import run_here
from tests.promises.verify.test_verify import copied, damage, feed_on, verdict_of
from tests.world.engines import Here

ROWS = 2_000
CHUNK_ROWS = 800  # the feed's chunk_rows_max
STATEMENT_TIME_EXCEEDED = 1969


@pytest.fixture
def feed(
    tmp_path: Path, shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> Feed:
    """A feed that has copied a table `t` of names in mixed case, whose order is not that of their bytes."""
    run_here(monkeypatch)
    schema = fresh_schema(shard)
    shard.sql(f"CREATE TABLE {schema}.t (name VARCHAR(20) COLLATE utf8mb4_unicode_ci PRIMARY KEY, v INT)")
    names = [f"{'nN'[number % 2]}é{number * 7919 % ROWS:05}" for number in range(ROWS)]
    shard.sql(f"INSERT INTO {schema}.t VALUES {', '.join(f'({name!r}, 1)' for name in names)}")
    feed = feed_on(tmp_path, {"a": shard}, schema, {"a": shard.port})
    copied(feed)
    return feed


def table_of(feed: Feed) -> TableId:
    return TableId(feed.tables[0].partition(".")[0], "t")


def test_every_select_is_bounded(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Here()
    sizes = []

    def select(*arguments: Any) -> pa.Table:
        rows = select_chunk(*arguments)
        sizes.append(rows.num_rows)
        return rows

    monkeypatch.setattr(selected, "select_chunk", select)
    verdict = verdict_of(feed, here)
    assert verdict.rows == {table_of(feed): ROWS}
    assert verdict.differences == 0
    assert sizes == [CHUNK_ROWS, CHUNK_ROWS, ROWS - 2 * CHUNK_ROWS]
    tasks, strays = here.done
    assert [type(task) for task in strays] == [StrayTask]
    assert len(tasks) == 1, "which lake rows lie in one chunk only the server knows"


def test_rows_change_and_differ(feed: Feed, shard: PrivateServer) -> None:
    table = table_of(feed)
    rows = read(feed, table).arrow().sort_by("name")
    wrong, removed = rows.slice(10, 1), rows.slice(ROWS // 2, 1)
    extra = wrong.set_column(wrong.schema.get_field_index("name"), "name", pa.array(["Nowhere"]))
    wrong = wrong.set_column(wrong.schema.get_field_index("v"), "v", pa.array([7], pa.int32()))
    # Later than the newest epoch: not what is compared.
    shard.sql(
        f"UPDATE {table} SET name = CONCAT('moved', name) WHERE name > 'n' LIMIT 300",
        f"UPDATE {table} SET v = 5 WHERE name LIKE '%9'",
        f"DELETE FROM {table} WHERE name LIKE '%8' LIMIT 100",
    )
    verdict = verdict_of(feed, Here())
    assert verdict.differences == 0, verdict.found
    assert verdict.rows == {table: ROWS}
    damage(feed, table, upserts=pa.concat_tables([extra, wrong]), deletes=removed)
    found = verdict_of(feed, Here()).found[table]
    assert (found.missing, found.extra, found.changed) == (1, 1, 1)


def test_a_select_that_takes_too_long_makes_smaller_chunks(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was read before it is no verdict: the rest of the lake's rows is not missing at the source."""
    here = Here()

    def select(session: Session, table: Any, chunk: Chunk) -> pa.Table:
        rows = select_chunk(session, table, chunk)
        if rows.num_rows == CHUNK_ROWS and chunk.lo is not None:
            raise ServerSaid(STATEMENT_TIME_EXCEEDED, "Query was interrupted: execution time limit exceeded")
        return rows

    monkeypatch.setattr(selected, "select_chunk", select)
    verdict = verdict_of(feed, here)
    assert verdict.differences == 0, verdict.found
    assert verdict.rows == {table_of(feed): ROWS}
    first, second = (len(task.copy.chunks) for tasks in here.done[:-1] for task in tasks)
    assert second > first
