"""Which keys lie in a range, asked of the server: the same as what a SELECT of the range returns."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.chunk import Bound, Chunk
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.ask_ranges import inside
from catchment.source.catalog import read_table
from catchment.source.select import select_chunk
from catchment.source.session import connect
from tests.world.rows import SPELLINGS

Case = tuple[str, list[str], Bound, Bound]
_SPELLED = ", ".join(f"('{spelling.format(n)}', {n})" for n in (1, 2, 10) for spelling in SPELLINGS)

CASES: dict[str, Case] = {
    "collated": ("s VARCHAR(30) COLLATE utf8mb4_unicode_ci, n INT", [_SPELLED], ("ada 1", 1), ("ADA 2", 2)),
    "latin1": (
        "s VARCHAR(30) CHARACTER SET latin1, n INT",
        ["('b', 1), ('É', 2), ('é', 1), ('f', 0), ('%', 0), ('\\\\', 1)"],
        ("%",),
        ("É", 1),
    ),
    "enum": ("s ENUM('b','c','a'), n INT", ["('a', 1), ('b', 1), ('c', 2), ('c', 3)"], (1, 1), (2, 2)),
    "set": ("s SET('b','c','a'), n INT", ["('a', 1), ('', 1), ('c,a', 2), ('b', 3)"], (1, 1), (4, 9)),
    "time": (
        "s TIME(3), n INT",
        ["('-10:00:00.5', 1), ('00:00', 2), ('300:00', 3)"],
        ("-10:00:00.5", 1),
        ("00:00", 2),
    ),
    "double": (
        "s DOUBLE, n DECIMAL(30,2)",
        ["(0.1, 1), (-1e300, 2), (5e-324, 3), (0.3, 0.5)"],
        ("-1", "0"),
        ("0.1", "1.00"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_keys_in_a_range_are_those_that_a_select_returns(
    shard: PrivateServer, fresh_schema: Callable[..., str], name: str
) -> None:
    columns, rows, lo, hi = CASES[name]
    schema = fresh_schema(shard)
    ignore = [f"INSERT IGNORE INTO t VALUES {values}" for values in rows]
    create = f"CREATE TABLE t ({columns}, PRIMARY KEY (s, n)) CHARACTER SET utf8mb4"
    shard.sql(create, *ignore, database=schema)
    endpoint = Endpoint("-80", shard.host, shard.port, FEED_USER, shard.password)
    connection = connect(endpoint)
    try:
        table = read_table(connection, TableId(schema, "t"))

        def select(low: Bound | None, high: Bound | None) -> pa.Table:
            return select_chunk(connection, table, Chunk("-80", table.id, low, high))

        whole = select(None, None)
        for low, high in ((lo, hi), (None, lo), (hi, None), (None, None)):
            mask = inside(connection, table, whole, [(low, high)])
            assert whole.filter(pa.array(mask)).to_pylist() == select(low, high).to_pylist()
        assert 0 < select(lo, hi).num_rows < whole.num_rows
    finally:
        connection.close()
