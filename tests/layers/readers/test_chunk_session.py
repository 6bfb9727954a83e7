"""A group of chunks of several tables on one connection: one that cannot be read leaves the others whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkTask, Target
from catchment.model.chunk import Chunk
from catchment.model.table import Table, TableId
from catchment.readers.copy import read_group
from catchment.sink.delta.writer import LakeWriter
from catchment.source.catalog import read_table
from catchment.source.first_cut import originate
from catchment.source.session import Session
from tests.promises.exact.feedrun import make_feed

ROWS = 20_000  # more than the socket holds: the rest of an abandoned result comes later


def test_the_table_behind_one_that_cannot_be_decoded_is_read(
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = fresh_schema(shard)
    for name in ("bad", "good"):
        shard.sql(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {name} SELECT seq, seq FROM seq_1_to_{ROWS}",
            database=schema,
        )
    shard.sql(f"INSERT INTO {schema}.bad VALUES (0, 0)")  # behind another group rows are proven visible
    feed = make_feed(tmp_path, {"-80": shard}, schema, chunk_rows=ROWS)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    origin = originate("f", endpoints, lambda table: table.schema == schema, 0)

    def altered_afterwards(session: Session, table: TableId) -> Table:
        found = read_table(session, table)
        if table.name == "bad":
            shard.sql(f"ALTER TABLE {schema}.bad MODIFY v VARCHAR(20)")
        return found

    monkeypatch.setattr("catchment.readers.copy.read_table", altered_afterwards)
    at = origin.cut["-80"]
    chunks = tuple(Chunk("-80", shape.table, None, None, last=True) for shape in origin.shapes)
    target = Target(LakeWriter(str(tmp_path / "lake")), ("-80",), origin.epoch + 1, "x")
    group = read_group(ChunkTask(endpoints["-80"], at.server, at.at, at.at, chunks, origin.shapes, target))
    assert {table.name: rows.num_rows for table, rows in group.rows.items()} == {"good": ROWS}
    ((refused, why),) = group.refused
    assert refused.table.name == "bad"
    assert "'v'" in why
