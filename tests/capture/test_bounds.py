"""Chunks of every kind of key: walking the bounds, the chunks hold each row exactly once."""

from collections.abc import Callable, Sequence
from contextlib import closing

import pytest

from catchment.demo.server import PrivateServer
from catchment.flow.capture.bounds import key_after, newest_key
from catchment.flow.capture.catalog import read_table
from catchment.flow.capture.connect import connect, pin
from catchment.flow.capture.select import select_chunk
from catchment.model.chunk import Bound, Chunk, chunk_key
from catchment.model.source import Endpoint
from catchment.model.table import TableId

# Columns of the key, and SQL for the values of row `seq` (1 to 60); INSERT IGNORE where values repeat.
KEYS = {
    "bigint": ("k BIGINT", "seq * 1000003 - 30000000"),
    "unsigned": ("k BIGINT UNSIGNED", "18446744073709551615 - seq * 7"),
    "decimal": ("k DECIMAL(20,6)", "(seq - 30) * 1234567.891234"),
    "date": ("k DATE", "'2020-01-01' + INTERVAL seq * 17 DAY"),
    "datetime": ("k DATETIME(6)", "'2020-01-01' + INTERVAL seq * 1000001 MICROSECOND"),
    "timestamp": ("k TIMESTAMP(3)", "'2020-01-01' + INTERVAL seq * 1001000 MICROSECOND"),
    "time": ("k TIME(2)", "SEC_TO_TIME((seq - 30) * 100000.25)"),
    "year": ("k YEAR", "1940 + seq"),
    "varbinary": ("k VARBINARY(9)", "UNHEX(CONCAT(LPAD(HEX((seq * 37) MOD 256), 2, '0'), '00'))"),
    "binary": ("k BINARY(3)", "UNHEX(LPAD(HEX(seq * 70001), 6, '0'))"),
    "collated": (
        "k VARCHAR(20) COLLATE utf8mb4_general_ci",
        "CONCAT(ELT(1 + seq MOD 4, 'a', 'B', 'é', 'Z'), seq)",
    ),
    "trailing spaces": ("k CHAR(12)", "CONCAT(' ', seq, '  ')"),
    "enum": ("e ENUM('z','a','m','b'), n INT", "ELT(1 + seq MOD 4, 'z', 'a', 'm', 'b'), seq"),
    "set": ("s SET('z','a','m','b','q','c')", "seq"),
    "bit": ("k BIT(17)", "seq * 2000"),
    "float": ("k FLOAT", "seq / 7 - 3"),
    "double": ("k DOUBLE", "(seq - 30) / 7e30"),
    "composite": (
        "a INT, b VARCHAR(5), c DATE",
        "seq MOD 5 - 2, CONCAT('x', seq MOD 7), '2020-01-01' + INTERVAL seq DAY",
    ),
    "names": ("`we``ird ?%s` INT, `select` INT", "seq MOD 3, seq"),
}


def walked(server: PrivateServer, table: TableId, rows: int) -> Sequence[list[tuple[object, ...]]]:
    """Key values of the chunks that walking the index in steps of `rows` gives."""
    endpoint = Endpoint("s", server.host, server.port, "catchment", server.password)
    chunks = []
    with closing(connect(endpoint)) as connection:
        pin(connection, endpoint)
        definition = read_table(connection, endpoint, table)
        key = chunk_key(definition)
        end = newest_key(connection, endpoint, table, key)
        lo: Bound | None = None
        while True:
            hi = key_after(connection, endpoint, table, key, lo, end, rows)
            found = select_chunk(connection, endpoint, definition, Chunk("s", table, lo, hi or end))
            columns = [found.column(name).to_pylist() for name in definition.key]
            chunks.append(list(zip(*columns, strict=True)))
            if hi is None:
                return chunks
            lo = hi


@pytest.mark.parametrize("name", KEYS)
def test_every_row_lies_in_exactly_one_chunk(
    name: str, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    columns, values = KEYS[name]
    names = ", ".join(
        part.split(" ")[0] if part[0] != "`" else part.rpartition(" ")[0] for part in _columns(columns)
    )
    shard.sql(
        f"CREATE TABLE t ({columns}, filler INT, PRIMARY KEY ({names})) CHARACTER SET utf8mb4",
        f"INSERT INTO t SELECT {values}, seq FROM (SELECT CAST(seq AS SIGNED) AS seq FROM seq_1_to_60) AS numbers",
        database=schema,
    )
    chunks = walked(shard, TableId(schema, "t"), 7)
    keys = [key for chunk in chunks for key in chunk]
    assert len(keys) == len(set(keys)) == 60
    assert len(chunks) >= 3


def _columns(text: str) -> list[str]:
    """Column definitions; commas within ENUM and DECIMAL do not part them."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
