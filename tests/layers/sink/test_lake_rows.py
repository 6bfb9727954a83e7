"""Which rows of the lake a verification holds in memory beside a chunk."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from catchment.model.chunk import Chunk, chunk_key
from catchment.model.epoch import Part
from catchment.model.table import ColumnType, Kind
from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.reading.chunks import LakeReader
from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.source.bounds import bound_of
from tests.layers.sink.model import FEED, INT, delta, shape, write

ROWS = 40
START = datetime(2024, 2, 28, 23, 0, 0, 5)
# What PyMySQL returns for the values of the lake, where that is something else.
KEYS: dict[str, tuple[ColumnType, list[Any]]] = {
    "integer": (INT, list(range(-20, 20))),
    "unsigned": (ColumnType(Kind.BIGINT, unsigned=True), [Decimal(2**63 - 20 + n) for n in range(ROWS)]),
    "year": (ColumnType(Kind.YEAR), list(range(1990, 1990 + ROWS))),
    "decimal": (
        ColumnType(Kind.DECIMAL, length=20, scale=3),
        [Decimal(n - 20).scaleb(-3) for n in range(ROWS)],
    ),
    "binary": (ColumnType(Kind.BINARY, length=2), [(120 + n).to_bytes(2, "big") for n in range(ROWS)]),
    "blob": (ColumnType(Kind.BLOB), [b"\xff" * n for n in range(ROWS)]),
    "date": (ColumnType(Kind.DATE), [date(2024, 2, 1) + timedelta(n) for n in range(ROWS)]),
    "datetime": (
        ColumnType(Kind.DATETIME, scale=6),
        [START + timedelta(microseconds=n) for n in range(ROWS)],
    ),
    "timestamp": (
        ColumnType(Kind.TIMESTAMP, scale=6),
        [(START + timedelta(hours=n)).replace(tzinfo=UTC) for n in range(ROWS)],
    ),
}


@pytest.mark.parametrize("kind", KEYS)
def test_no_more_than_the_chunk_of_a_key_that_is_ordered(tmp_path: Path, kind: str) -> None:
    column, values = KEYS[kind]
    table = shape("t", {"k": column, "v": INT}, ("k", "v"))
    rows = [("s/0", 1, False, (value, 1)) for value in values]
    other = [("s/1", 1, False, (values[12], 1))]
    file = write(tmp_path, table, Part.BASE, "1-a", rows + other)
    DeltaSink(tmp_path, FEED).apply(delta(table, file), 1, 1)
    directory = tail_dir(tmp_path, table.table)
    tail = DeltaLog(directory).newest()
    assert tail is not None
    base = tuple(str(directory / path) for path in tail.files)
    reader = LakeReader(DeltaState(table, 1, 1, base, ()))
    key = chunk_key(table.definition)
    assert key.ordered

    def bound(at: int) -> tuple[int | str, ...]:
        shown = values[at].replace(tzinfo=None) if kind == "timestamp" else values[at]
        return bound_of(key, (int(shown) if kind == "unsigned" else shown, 1))

    def held(*ranges: tuple[int | None, int | None]) -> list[Any]:
        limits = [(None if lo is None else bound(lo), None if hi is None else bound(hi)) for lo, hi in ranges]
        chunks = [Chunk("s/0", table.table, lo, hi) for lo, hi in limits]
        return sorted(reader.rows(chunks)["k"].to_pylist())

    # The first column of a bound alone decides, so that the row at the lower bound is held as well.
    assert held((10, 15)) == values[10:16]
    assert held((10, 15), (15, 20)) == values[10:21]
    assert held((None, 15)) == values[:16]
    assert held((30, None)) == values[30:]
    assert held((None, None)) == values
