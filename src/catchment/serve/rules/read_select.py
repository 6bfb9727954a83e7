"""A SELECT made the columns of a result and a condition, for one table."""

from collections.abc import Iterator, Mapping

from catchment.model.table import Column, Table, without_case
from catchment.serve.rules.expression import Expression, Family, Field, Output
from catchment.serve.rules.read_expression import Reader, order_of
from catchment.serve.rules.refused import Refused
from catchment.serve.rules.select import Given, select_of


def read_select(
    text: str, table: Table, collations: Mapping[str, str]
) -> tuple[tuple[Output, ...], Expression | None]:
    """The columns that a filter gives, and its condition. Raises Refused."""
    select = select_of(text)
    orders = {name: order_of(collation) for name, collation in collations.items()}
    reader = Reader(table, select.known_as | {str(table.id).lower()}, orders)
    outputs = tuple(output for one in select.given for output in _outputs(reader, one))
    _must_differ(outputs)
    where = None if select.where is None else reader.condition(select.where)
    return outputs, where


def _outputs(reader: Reader, given: Given) -> Iterator[Output]:
    if given.tree is None:
        yield from (Output(column, reader.field(column.name)) for column in reader.table.columns)
        return
    value = reader.read(given.tree)
    if isinstance(value, Field):
        type_ = reader.table.column(value.name).type
        yield Output(Column(given.name or value.name, type_), value)
        return
    if not given.name:
        raise Refused(f"{given.tree.sql(dialect='mysql')} has no name; write AS and one behind it")
    if value.sort.family is Family.NULL:
        raise Refused(f"{given.name} is NULL in any case; leave it out")
    yield Output(Column(given.name, value.sort.type), value)


def _must_differ(outputs: tuple[Output, ...]) -> None:
    seen = set()
    for output in outputs:
        name = output.column.name
        if name != name.strip():
            raise Refused(f"{name!r} is no name of a column: it begins or ends with a space")
        if without_case(name) in seen:
            raise Refused(f"two columns of the result have the name {name}; rename one with AS")
        seen.add(without_case(name))
