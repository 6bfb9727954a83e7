"""Rows are asked for by their keys, of each kind of key that can be named, and by the index of the key."""

import random
from collections.abc import Callable
from contextlib import closing

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.chunk import Chunk
from catchment.model.errors import SourceError
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, Table, TableId
from catchment.rewind.key_chunks import key_chunks, keys_of
from catchment.source.bounds import MARK
from catchment.source.catalog import read_table
from catchment.source.chosen_keys import among, can_be_named
from catchment.source.select import key_query, select_chunk
from catchment.source.session import Session, connect
from tests.layers.source.every_key import CASES, ON_MYSQL, make_table
from tests.world.servers.launch import PrivateMySQL

# Of the kinds in `every_key`, those whose keys cannot be named.
UNNAMED = {
    "decimal as text",
    "time",
    "uuid",
    "inet4",
    "inet6",
    "gbk",
    "sjis",
    "utf16",
    "gb18030",
    "enum",
    "enum that may be invalid",
    "set",
    "set of 64",
    "enum of many",
    "set in a key",
    "bit",
    "bit(64)",
    "float",
    "float of many digits",
    "double",
    "double(m,d)",
    "composite, all sorts",
}


def opened(server: PrivateServer, table: TableId) -> tuple[Session, Table]:
    session = connect(Endpoint("s", server.host, server.port, "catchment", server.password))
    return session, read_table(session, table)


def every_row_is_found_by_its_key(server: PrivateServer, schema: str, name: str) -> None:
    """Some rows of 60 are asked for, of which some have gone."""
    make_table(server, schema, name, list(range(1, 61)))
    session, table = opened(server, TableId(schema, "t"))
    with closing(session):
        assert can_be_named(table) == (name not in UNNAMED)
        if name in UNNAMED:
            return
        whole = select_chunk(session, table, Chunk("s", table.id, None, None))
        rng = random.Random(name)
        asked = whole.take(pa.array(rng.sample(range(60), 25)))
        server.sql("DELETE FROM t WHERE filler % 5 = 1", database=schema)
        chunks = list(key_chunks(ShardTable("s", table.id), asked.select(list(table.key)), 7))
        assert [chunk.keys != b"" for chunk in chunks] == [True] * 4
        found = pa.concat_tables([select_chunk(session, table, chunk) for chunk in chunks])
        left = {n for n in asked["filler"].to_pylist() if n % 5 != 1}
        assert sorted(found["filler"].to_pylist()) == sorted(left)
        told = keys_of(chunks)
        assert told is not None
        assert told.equals(asked.select(list(table.key)).combine_chunks())


@pytest.mark.wide
@pytest.mark.parametrize("name", CASES)
def test_every_row_is_found_by_its_key(
    name: str, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    every_row_is_found_by_its_key(shard, fresh_schema(shard), name)


@pytest.mark.wide
@pytest.mark.parametrize("name", ON_MYSQL)
def test_every_row_is_found_by_its_key_on_mysql(
    name: str, mysql_server: PrivateMySQL, fresh_schema: Callable[..., str]
) -> None:
    every_row_is_found_by_its_key(mysql_server, fresh_schema(mysql_server), name)


@pytest.mark.parametrize("charset", ["latin1", "ascii", "utf8mb3"])
def test_every_character_of_a_small_charset(
    charset: str, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    shard.sql(
        f"CREATE TABLE t (k VARCHAR(9) CHARACTER SET {charset} COLLATE {charset}_bin PRIMARY KEY)",
        database=schema,
    )
    first, last = {"latin1": (0, 255), "ascii": (0, 127), "utf8mb3": (0xC3A0, 0xC3BF)}[charset]
    shard.sql(
        f"INSERT INTO t SELECT CONCAT('k', CHAR(seq USING {charset}), '.') FROM seq_{first}_to_{last}",
        database=schema,
    )
    session, table = opened(shard, TableId(schema, "t"))
    with closing(session):
        whole = select_chunk(session, table, Chunk("s", table.id, None, None))
        assert whole.num_rows == 1 + last - first
        (chunk,) = key_chunks(ShardTable("s", table.id), whole, 1000)
        assert select_chunk(session, table, chunk).sort_by("k").equals(whole.sort_by("k"))


def a_thousand_keys_are_read_by_the_index(server: PrivateServer, schema: str) -> None:
    server.sql(
        "CREATE TABLE t (a BIGINT, b VARCHAR(20) COLLATE utf8mb4_unicode_ci, c DATETIME(3), d DECIMAL(20, 2), "
        "v CHAR(90), PRIMARY KEY (b, a, c, d))",
        "INSERT INTO t WITH RECURSIVE s AS (SELECT 1 AS seq UNION ALL SELECT seq + 1 FROM s WHERE seq < 999) "
        "SELECT one.seq, CONCAT('É', two.seq), '2026-01-01' + INTERVAL one.seq SECOND, two.seq / 4, 'v' "
        "FROM s AS one JOIN s AS two WHERE two.seq < 31",
        "ANALYZE TABLE t",
        database=schema,
    )
    session, table = opened(server, TableId(schema, "t"))
    with closing(session):
        whole = select_chunk(session, table, Chunk("s", table.id, None, None))
        keys = whole.take(pa.array(random.Random(1).sample(range(whole.num_rows), 1000))).select(
            list(table.key)
        )
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


def test_a_thousand_keys_are_read_by_the_index(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    a_thousand_keys_are_read_by_the_index(shard, fresh_schema(shard))


@pytest.mark.wide
def test_a_thousand_keys_are_read_by_the_index_on_mysql(
    mysql_server: PrivateMySQL, fresh_schema: Callable[..., str]
) -> None:
    a_thousand_keys_are_read_by_the_index(mysql_server, fresh_schema(mysql_server))
