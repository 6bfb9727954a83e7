"""docs/types.md says what the table of type facts says, in the names of Spark and Delta."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.pandas.types import from_arrow_type

from catchment.model.table import ColumnType, Kind
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.types_reference import ENTRIES, key_rule, names, reference
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.wire.cells.types import arrow_type
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, shape
from tests.world.delta_scan import DeltaScan
from tests.world.delta_spark import DeltaSpark
from tests.world.settled import carry_out

PAGE = Path(__file__).parents[3] / "docs" / "types.md"
# polars has 64 bits for lengths.
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == reference(), "run: python -m catchment.sink.delta.types_reference"


def test_every_kind_has_a_line() -> None:
    assert {kind.kind for entry in ENTRIES for kind in entry.types} == set(Kind)


TYPES = sorted({arrow_type(k) for e in ENTRIES for k in e.types}, key=str)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain table with a column of every type."""
    kinds = {arrow_type(k): k for e in ENTRIES for k in e.types}
    table = shape(
        "every_type", {f"c{n}": kinds[arrow] for n, arrow in enumerate(TYPES)} | {"id": INT}, ("id",)
    )
    feeder = Feeder(tmp_path_factory.mktemp("types"))
    feeder.put(table, (*(None for _ in TYPES), 1))
    carry_out(UpkeepOrder(str(feeder.root), FEED, 1, 3600.0))
    return table_dir(feeder.root, table.table)


def test_names_are_those_that_readers_show(plain: Path) -> None:
    delta = {
        field.name: str(field.type.type)
        for field in DeltaTable(plain).schema().fields
        if field.name[0] == "c"
    }
    assert list(delta.values()) == [names(arrow).delta for arrow in TYPES]
    with DeltaScan() as judge:
        found = judge.query("", f"DESCRIBE SELECT * FROM delta_scan('{plain}')").to_pylist()
    duckdb = {row["column_name"]: row["column_type"] for row in found}
    assert [duckdb[name] for name in delta] == [names(arrow).duckdb for arrow in TYPES]
    arrow = pl.read_delta(str(plain)).to_arrow(compat_level=pl.CompatLevel.oldest()).schema
    assert [arrow.field(name).type for name in delta] == [_LARGE.get(arrow, arrow) for arrow in TYPES]


@pytest.mark.parametrize("arrow", TYPES, ids=str)
def test_names_of_spark(arrow: pa.DataType) -> None:
    assert from_arrow_type(arrow, prefer_timestamp_ntz=True).simpleString() == names(arrow).spark


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_names_are_those_that_spark_shows(plain: Path, tmp_path: Path) -> None:
    with DeltaSpark(str(tmp_path)) as spark:
        found = spark.sql(f"DESCRIBE delta.`{plain}`").to_pylist()
    shown = {row["col_name"]: row["data_type"] for row in found}
    assert [shown[f"c{n}"] for n in range(len(TYPES))] == [names(arrow).spark for arrow in TYPES]


def test_key_rules() -> None:
    assert key_rule(ColumnType(Kind.DECIMAL, length=38)) == "by value"
    assert key_rule(ColumnType(Kind.DECIMAL, length=39)) == "by the server"
    assert key_rule(ColumnType(Kind.GEOMETRY)) == "no"
