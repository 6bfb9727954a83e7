"""docs/types.md says what the table of type facts says, in the names of Spark and Delta."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Schema
from pyspark.sql.pandas.types import from_arrow_type

from catchment.model.table import ColumnType, Kind
from catchment.sink.delta.types_reference import ENTRIES, key_rule, names, reference
from catchment.wire.cells.types import arrow_type

PAGE = Path(__file__).parents[3] / "docs" / "types.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == reference(), "run: python -m catchment.sink.delta.types_reference"


def test_every_kind_has_a_line() -> None:
    assert {kind.kind for entry in ENTRIES for kind in entry.types} == set(Kind)


@pytest.mark.parametrize("arrow", sorted({arrow_type(k) for e in ENTRIES for k in e.types}, key=str), ids=str)
def test_names_are_those_of_spark_and_delta(arrow: pa.DataType) -> None:
    spark, delta = names(arrow)
    assert from_arrow_type(arrow, prefer_timestamp_ntz=True).simpleString() == spark
    (field,) = Schema.from_arrow(pa.schema([pa.field("c", arrow)])).fields
    assert str(field.type.type) == delta


def test_key_rules() -> None:
    assert key_rule(ColumnType(Kind.DECIMAL, length=38)) == "by value"
    assert key_rule(ColumnType(Kind.DECIMAL, length=39)) == "by the server"
    assert key_rule(ColumnType(Kind.GEOMETRY)) == "no"
