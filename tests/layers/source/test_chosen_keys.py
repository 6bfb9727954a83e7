"""Rows are asked for by their keys, with every character of small charsets, and by the index of the key."""

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.chunk import Chunk
from catchment.model.errors import SourceError
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, TableId
from catchment.rewind.key_chunks import key_chunks
from catchment.source.bounds import MARK
from catchment.source.catalog import read_table
from catchment.source.chosen_keys import among
from catchment.source.select import key_query, select_chunk
from catchment.source.session import connect

CHARSETS = {"latin1": (0, 255), "ascii": (0, 127), "utf8mb3": (0xC3A0, 0xC3BF)}


def endpoint_of(server: PrivateServer) -> Endpoint:
    return Endpoint("s", server.host, server.port, "catchment", server.password)


def test_every_character_of_a_small_charset(
    shard: PrivateServer, fresh_schema: Callable[..., str], subtests: pytest.Subtests
) -> None:
    schema = fresh_schema(shard)
    with connect(endpoint_of(shard)) as session:
        for charset, (first, last) in CHARSETS.items():
            column = f"k VARCHAR(9) CHARACTER SET {charset} COLLATE {charset}_bin PRIMARY KEY"
            characters = f"CONCAT('k', CHAR(seq USING {charset}), '.') FROM seq_{first}_to_{last}"
            shard.sql(
                f"CREATE TABLE {charset} ({column})",
                f"INSERT INTO {charset} SELECT {characters}",
                database=schema,
            )
            with subtests.test(charset):
                table = read_table(session, TableId(schema, charset))
                whole = select_chunk(session, table, Chunk("s", table.id, None, None))
                assert whole.num_rows == 1 + last - first
                (chunk,) = key_chunks(ShardTable("s", table.id), whole, 1000)
                assert select_chunk(session, table, chunk).sort_by("k").equals(whole.sort_by("k"))


@pytest.mark.parametrize("fixture", ["shard", "mysql_server"])
def test_a_thousand_keys_are_read_by_the_index(
    fixture: str, request: pytest.FixtureRequest, fresh_schema: Callable[..., str]
) -> None:
    server: PrivateServer = request.getfixturevalue(fixture)
    schema = fresh_schema(server)
    server.sql(
        "CREATE TABLE t (a BIGINT, b VARCHAR(20) COLLATE utf8mb4_unicode_ci, c DATETIME(3), d DECIMAL(20, 2), "
        "v CHAR(90), PRIMARY KEY (b, a, c, d))",
        "INSERT INTO t WITH RECURSIVE s AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM s WHERE seq < 999) "
        "SELECT one.seq, CONCAT('É', two.seq), '2026-01-01' + INTERVAL one.seq SECOND, two.seq / 4, 'v' "
        "FROM s AS one JOIN s AS two WHERE two.seq < 31",
        "ANALYZE TABLE t",
        database=schema,
    )
    with connect(endpoint_of(server)) as session:
        table = read_table(session, TableId(schema, "t"))
        whole = select_chunk(session, table, Chunk("s", table.id, None, None))
        chosen = random.Random(1).sample(range(whole.num_rows), 1000)
        keys = whole.take(pa.array(chosen)).select(list(table.key))
        with pytest.raises(SourceError, match=r"its key is \(b, a, c, d\), and rows are asked by \(a, b\)"):
            among(table, keys.select(["a", "b"]))
        sql, values = key_query(table, among(table, keys))
        assert MARK not in sql
        plan = session.named_row(
            "EXPLAIN FORMAT=TRADITIONAL " + sql.replace("%", "%%").replace("?", "%s"), tuple(values)
        )
        assert plan is not None
        assert (plan["type"], plan["key"]) == ("range", "PRIMARY"), plan
        assert int(plan["rows"]) <= 3000
