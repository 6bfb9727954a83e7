"""A row is the same to `==` however it was read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pymysql

from catchment.demo.server import PrivateServer
from tests.world.canonical import Row, canonical_row
from tests.world.oracle import Oracle

_COLUMNS = {
    "id": "BIGINT PRIMARY KEY",
    "u": "BIGINT UNSIGNED",
    "d": "DECIMAL(12,2)",
    "f": "DOUBLE",
    "t": "VARCHAR(20) CHARACTER SET utf8mb4",
    "c": "CHAR(8) CHARACTER SET latin1",
    "at6": "DATETIME(6)",
    "at0": "DATETIME",
    "day": "DATE",
}
_ROWS = """
    (1, 18446744073709551615, -1234567890.50, 0.1, 'é😀 ', 'ÿ',
     '2026-01-02 03:04:05.000001', '2026-01-02', '1000-01-01'),
    (-2, 0, 0.00, -1e300, '', '', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:00', '9999-12-31'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""


def _lake_type(column: str) -> pa.DataType:
    """What a lake may hold the column as; unsigned 64 bit is decimal(20,0) by DESIGN section 6."""
    return {
        "id": pa.int64(),
        "u": pa.decimal128(20, 0),
        "d": pa.decimal128(12, 2),
        "f": pa.float64(),
        "at6": pa.timestamp("us"),
        "at0": pa.timestamp("us"),
        "day": pa.date32(),
    }.get(column, pa.string())


def test_select_log_arrow_polars_and_duckdb_agree(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    schema = fresh_schema(shard)
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    shard.sql(f"CREATE TABLE t ({columns})", database=schema)
    oracle = Oracle.from_rest(shard.login(), {f"{schema}.t": ("id",)})
    shard.sql(f"INSERT INTO t VALUES {_ROWS}", database=schema)
    connection = shard.connect()
    with connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(f"SELECT * FROM {schema}.t ORDER BY id")
        selected = [dict(row) for row in cursor.fetchall()]
    replayed = oracle.advance_to_end()[f"{schema}.t"]
    lake = pa.table({name: pa.array([row[name] for row in selected], _lake_type(name)) for name in _COLUMNS})
    pq.write_table(lake, tmp_path / "lake.parquet")
    query = duckdb.sql(f"SELECT * FROM '{tmp_path / 'lake.parquet'}' ORDER BY id")
    expected = _canonical(selected)
    assert len(expected) == 3
    assert [replayed[(row["id"],)] for row in expected] == expected
    assert _canonical(lake.to_pylist()) == expected
    assert _canonical(polars.from_arrow(lake).to_dicts()) == expected  # type: ignore[union-attr]
    assert _canonical([dict(zip(query.columns, row, strict=True)) for row in query.fetchall()]) == expected


def _canonical(rows: list[dict[str, Any]]) -> list[Row]:
    return [canonical_row(row) for row in rows]
