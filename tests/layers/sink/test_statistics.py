"""What the log says of values: by it readers pass over files, and never over one that has the row."""

import datetime as dt
import random
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from catchment.model.table import ColumnType, Kind
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile
from catchment.sink.delta.statistics import OTHERS_BYTES, delta_stats
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.wire.cells.types import arrow_type
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, shape
from tests.world.delta_scan import DeltaScan
from tests.world.settled import carry_out

_LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)
# Of each type the least and the largest value that a server has, and some that are hard to write down.
VALUES: dict[str, tuple[ColumnType, list[Any]]] = {
    "tiny": (ColumnType(Kind.TINYINT), [-128, 0, 127]),
    "big": (ColumnType(Kind.BIGINT), [-(2**63), 2**53 + 1, 2**63 - 1]),
    "unsigned": (
        ColumnType(Kind.BIGINT, unsigned=True),
        [Decimal(0), Decimal(2**63 + 1), Decimal(2**64 - 1)],
    ),
    "money": (
        ColumnType(Kind.DECIMAL, length=38, scale=10),
        [Decimal(sign + "9" * 28 + "." + "9" * 10) for sign in "- "] + [Decimal("0.0000000001")],
    ),
    "fraction": (
        ColumnType(Kind.DECIMAL, length=38, scale=38),
        [Decimal("-0." + "9" * 38), Decimal("0." + "0" * 37 + "1"), Decimal("0." + "9" * 38)],
    ),
    "single": (ColumnType(Kind.FLOAT), [-3.4028234663852886e38, 1.401298464324817e-45, 0.10000000149011612]),
    "double": (ColumnType(Kind.DOUBLE), [-1.7976931348623157e308, 5e-324, 0.1, 1.7976931348623157e308]),
    "day": (ColumnType(Kind.DATE), [dt.date(1000, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "local": (
        ColumnType(Kind.DATETIME, scale=6),
        [dt.datetime(1000, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), _LAST],
    ),
    "moment": (
        ColumnType(Kind.TIMESTAMP, scale=6),
        [
            dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
            dt.datetime(2026, 11, 23, 1, 2, 3, 1_999, tzinfo=dt.UTC),
            dt.datetime(2106, 2, 7, 6, 28, 15, 999_999, tzinfo=dt.UTC),
        ],
    ),
    "words": (
        ColumnType(Kind.TEXT, charset="utf8mb4"),
        [
            "",
            "a" * 32,
            "a" * 33,
            "z" * 31 + "\U0010ffff" * 3,
            "\U0010ffff" * 40,
            "\U0001f600" * 33,
            "\ud7ff" * 40,
            'quote"\\',
            "y" * 5000,
        ],
    ),
    "bytes": (ColumnType(Kind.BLOB), [b"", b"\xff" * 50]),
}
# DataFusion takes a time in SQL for nanoseconds, which do not reach so far.
_DATAFUSION = {"local": "Timestamp(Microsecond, None)", "moment": 'Timestamp(Microsecond, Some("UTC"))'}
ROWS = max(len(values) for _, values in VALUES.values())
TABLE = shape("values", {"id": INT, **{name: kind for name, (kind, _) in VALUES.items()}}, ("id",))


def value(name: str, row: int) -> Any:
    """What a row has in a column."""
    values = VALUES[name][1]
    return values[row % len(values)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain table with a file for each row, and one of which a row is dead."""
    root = tmp_path_factory.mktemp("lake")
    feeder = Feeder(root)
    for row in range(ROWS):
        rows = [(row, *(value(name, row) for name in VALUES))]
        if row == 0:
            rows.append((ROWS, *(None for _ in VALUES)))
            rows.append((ROWS + 1, *(value(name, 1) for name in VALUES)))
        feeder.put(TABLE, *rows)
        settle(root)
    feeder.put(TABLE, (ROWS + 1, *(None for _ in VALUES)), deleted=True)
    settle(root)
    return table_dir(root, TABLE.table)


@pytest.fixture(scope="module")
def judge() -> Iterator[DeltaScan]:
    with DeltaScan() as running:
        yield running


def settle(root: Path) -> None:
    carry_out(UpkeepOrder(str(root), FEED, 1, 3600.0))


def literal(name: str, number: Any) -> str:
    """A value in SQL, under its type."""
    kind = arrow_type(VALUES[name][0])
    if pa.types.is_decimal(kind):
        return f"CAST('{number:f}' AS DECIMAL({kind.precision}, {kind.scale}))"
    if pa.types.is_floating(kind):
        return f"CAST('{number!r}' AS {'FLOAT' if kind == pa.float32() else 'DOUBLE'})"
    if pa.types.is_timestamp(kind):
        zone = " WITH TIME ZONE" if kind.tz else ""
        return f"CAST('{number.isoformat(sep=' ')}' AS TIMESTAMP{zone})"
    if pa.types.is_string(kind):
        return f"'{number}'"
    return f"DATE '{number}'" if pa.types.is_date(kind) else str(number)


def by_delta_rs(plain: Path) -> Callable[[str], list[int]]:
    engine = QueryBuilder().register("t", DeltaTable(plain))

    def ask(condition: str) -> list[int]:
        rows = pa.table(engine.execute(f"SELECT id FROM t WHERE {condition}").read_all())
        return sorted(rows["id"].to_pylist())

    return ask


@pytest.mark.parametrize("name", [name for name in VALUES if name != "bytes"])
def test_every_reader_finds_each_value(plain: Path, judge: DeltaScan, name: str) -> None:
    of_rows = {row: value(name, row) for row in range(ROWS)}
    ask = by_delta_rs(plain)
    dtype = pl.scan_delta(str(plain)).collect_schema()[name]
    for number in VALUES[name][1]:
        wanted = [row for row, held in of_rows.items() if held == number]
        text = literal(name, number)
        typed = f"arrow_cast('{number}', '{_DATAFUSION[name]}')" if name in _DATAFUSION else text
        assert ask(f"{name} = {typed}") == wanted
        assert ask(f"{name} <= {typed}") == [row for row, held in of_rows.items() if held <= number]
        found = judge.query("", f"SELECT id FROM delta_scan('{plain}') WHERE {name} = {text}")
        assert sorted(found["id"].to_pylist()) == wanted
        frame = pl.scan_delta(str(plain)).filter(pl.col(name) == pl.lit(number, dtype)).collect()
        assert sorted(frame["id"].to_list()) == wanted


def test_which_columns_have_bounds(plain: Path) -> None:
    """All but bytes, and texts of which Parquet itself keeps no bounds."""
    newest = DeltaLog(plain).newest()
    assert newest is not None
    single = [file for file in newest.files.values() if file.live == 1]
    assert len(single) == ROWS - 1
    for file in single:
        row = file.bounds().min_values["id"]
        short = {name for name in VALUES if name != "bytes" and len(str(value(name, row))) < 4000}
        assert file.bounds().min_values.keys() - {"id", "_shard", "_epoch"} == short


def test_bounds_of_many_digits_stay_when_rows_die_and_at_a_checkpoint(plain: Path) -> None:
    newest = DeltaLog(plain).newest()
    assert newest is not None
    (worn,) = (file for file in newest.files.values() if file.dead is not None)
    assert digits(worn, "minValues")["money"] == "-" + "9" * 28 + "." + "9" * 10
    assert msgspec.json.decode(worn.add.stats or b"")["tightBounds"] is False
    DeltaTable(plain).create_checkpoint()
    again = DeltaLog(plain).newest()
    assert again is not None
    assert {path: digits(f, "maxValues") for path, f in again.files.items()} == {
        path: digits(f, "maxValues") for path, f in newest.files.items()
    }


def digits(file: LakeFile, side: str) -> dict[str, str]:
    """Bounds as the log writes them."""
    stats = msgspec.json.decode(file.add.stats or b"", type=dict[str, msgspec.Raw])
    bounds = msgspec.json.decode(stats[side], type=dict[str, msgspec.Raw])
    return {name: bytes(raw).decode() for name, raw in bounds.items()}


def test_duckdb_passes_over_files(plain: Path, judge: DeltaScan) -> None:
    for name in ("big", "money", "words", "day"):
        query = f"SELECT id FROM delta_scan('{plain}') WHERE {name} = {literal(name, value(name, 2))}"
        (plan,) = judge.query("", f"EXPLAIN ANALYZE {query}")["explain_value"].to_pylist()
        scanned = re.search(r"Scanning Files: (\d+)/(\d+)", plan)
        assert scanned is not None, plan
        assert int(scanned[1]) < int(scanned[2]) == ROWS


def test_a_wide_table_has_bounds_of_its_first_columns_and_of_as_many_others_as_fit(tmp_path: Path) -> None:
    rng = random.Random(1)
    columns = {f"column_{n}": [rng.randrange(10**12), None] for n in range(300)}
    pq.write_table(pa.table({**columns, "last": [1, 2]}), tmp_path / "t.parquet")
    stats = delta_stats(pq.read_metadata(tmp_path / "t.parquet"), ["last"], list(columns))
    told = msgspec.json.decode(stats)["minValues"]
    assert "last" in told
    assert 60 < len(told) < 200
    assert list(told)[1:] == list(columns)[: len(told) - 1]
    assert len(stats) < 1.2 * OTHERS_BYTES


def test_readers_are_told_to_look_at_all_columns(plain: Path) -> None:
    assert DeltaTable(plain).metadata().configuration["delta.dataSkippingNumIndexedCols"] == "-1"
