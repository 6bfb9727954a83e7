"""Types and values of a lake's columns in the words of the engines that read them."""

import pyarrow as pa

_DUCKDB_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.string(): "VARCHAR",
    pa.binary(): "BLOB",
}


_SPARK_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP",
    pa.string(): "STRING",
    pa.binary(): "BINARY",
}
_ARROW_NAMES = {
    pa.bool_(): "Boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date32",
    pa.timestamp("us"): "Timestamp(Microsecond, None)",
    pa.timestamp("us", tz="UTC"): 'Timestamp(Microsecond, Some("UTC"))',
    pa.string(): "Utf8",
    pa.binary(): "Binary",
}


def duckdb_type(kind: pa.DataType) -> str:
    """A type as DuckDB names it."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _DUCKDB_TYPES[kind]


def arrow_name(kind: pa.DataType) -> str:
    """A type as DataFusion's arrow_cast names it."""
    if pa.types.is_decimal(kind):
        return f"Decimal128({kind.precision}, {kind.scale})"
    return _ARROW_NAMES[kind]


def _spark_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _SPARK_TYPES[kind]


def spark_text(text: str) -> str:
    """A text as a literal of Spark: quotes and backslashes have a backslash in front, and braces are doubled for the
    formatter of `SparkSession.sql`."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")
    return f"'{escaped}'"


def duckdb_typed(expression: str, kind: pa.DataType) -> str:
    """An expression as DuckDB has it as a value of a type."""
    return f"CAST({expression} AS {duckdb_type(kind)})"


def spark_typed(expression: str, kind: pa.DataType) -> str:
    """The same as Spark has it."""
    return f"CAST({expression} AS {_spark_type(kind)})"


def datafusion_typed(expression: str, kind: pa.DataType) -> str:
    """The same as DataFusion has it."""
    return f"arrow_cast({expression}, '{arrow_name(kind)}')"
