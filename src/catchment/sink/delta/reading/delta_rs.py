"""A state read by delta-rs's own engine, which knows the vectors of a plain table."""

from collections.abc import Iterable

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from catchment.model.epoch import Part, TableShape
from catchment.model.errors import SinkError
from catchment.model.location import location
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import EPOCH, PART
from catchment.sink.delta.log.opened import open_table
from catchment.sink.delta.reading.places import Tables
from catchment.sink.delta.reading.rule import DATAFUSION, output_schema, rule_sql, source_schema
from catchment.sink.delta.reading.values import arrow_name
from catchment.sink.reading import double_quoted

_PLAIN, _TAIL = "plain", "tail"


def by_delta_rs(shape: TableShape, tables: Tables, origin: bool) -> pa.Table:
    """All rows, with the reader's rule over both tables. Raises SinkError."""
    plain = _opened(tables.plain, tables.plain_version)
    engine = QueryBuilder().register(_PLAIN, plain)
    settled = _select(shape, plain, _PLAIN)
    chunks: list[str] = []
    changes: list[str] = []
    if tables.tail_version is not None:
        tail = _opened(tables.tail, tables.tail_version)
        engine = engine.register(_TAIL, tail)
        chunks, changes = (
            [_of_tail(shape, tail, part, tables.settled)] for part in (Part.BASE, Part.CHANGES)
        )
    base = [settled, *chunks]
    if shape.mode is Mode.APPEND:
        base, changes = [f"{settled} WHERE false"], [*base, *changes]
    query = rule_sql(shape, _united(base), _united(changes) if changes else None, DATAFUSION, origin)
    return pa.table(engine.execute(query).read_all()).cast(output_schema(shape, origin))


def _united(queries: list[str]) -> str:
    return f"({' UNION ALL '.join(queries)})"


def _opened(directory: str, version: int) -> DeltaTable:
    table = open_table(location(directory), version)
    if table is None:
        raise SinkError(f"the Delta table {directory} is gone; put it back")
    return table


def _of_tail(shape: TableShape, tail: DeltaTable, part: Part, settled: int) -> str:
    return f"{_select(shape, tail, _TAIL)} WHERE {PART} = '{part.value}' AND {EPOCH} > {settled}"


def _select(shape: TableShape, table: DeltaTable, name: str) -> str:
    held = {field.name for field in table.schema().fields}
    return f"SELECT {', '.join(_columns(shape, held))} FROM {name}"


def _columns(shape: TableShape, held: set[str]) -> Iterable[str]:
    for field in source_schema(shape):
        quoted = double_quoted(field.name)
        yield quoted if field.name in held else f"arrow_cast(NULL, '{arrow_name(field.type)}') AS {quoted}"
