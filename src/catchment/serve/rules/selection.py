"""A rule compiled for one table: which of its rows are given, and which columns of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.errors import ConfigError, Unsupported
from catchment.model.table import Table
from catchment.rewind.change_types import typed
from catchment.serve.rules.expression import (
    Expression,
    Field,
    Order,
    Output,
    Rows,
    array_of,
    columns_of,
    sort_of,
)
from catchment.serve.rules.key_range import is_key_range, of_key
from catchment.serve.rules.refused import Refused
from catchment.serve.rules.rule import Rule
from catchment.serve.rules.xxhash64 import xxhash64
from catchment.wire.cells.types import arrow_type
from catchment.wire.keys.keys import encode

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slice:
    """The keys whose hash, divided by `of`, leaves `index`. The hash is xxHash64 of the encoded key
    (wire/keys/keys.py), the same on every machine and in every release."""

    key: tuple[str, ...]
    of: int
    index: int

    def takes(self, rows: Rows) -> Mask:
        """Which rows are in it. Raises Unsupported for a key that is NULL."""
        keys = encode(rows, self.key)
        offsets = keys.offsets
        if offsets is None:
            offsets = np.arange(rows.num_rows + 1, dtype=np.int64) * keys.width
        return np.asarray(xxhash64(keys.data, offsets) % np.uint64(self.of) == np.uint64(self.index))


@dataclass(frozen=True, slots=True)
class Selection:
    """What a rule gives of a table. `table`: what its rows have, without a key where a column of it is left out.

    `needs`: the columns that rows must have. Columns that are none of the table's, such as those of images, stay behind
    those of the result.
    """

    table: Table
    needs: tuple[str, ...]
    source: Table
    outputs: tuple[Output, ...]
    where: Expression | None = None
    slice: Slice | None = None

    def rows(self, rows: Rows) -> Rows:
        """Rows that stand for themselves, as those of a copy: those that are given, as they are given.

        Raises Unsupported where a result is out of range for its type.
        """
        with self._named():
            taken = self._taken(rows)
            return self._given(rows if taken is None else rows.filter(pa.array(taken)))

    def images(self, images: pa.Table, followed: Mask | None = None) -> pa.Table:
        """Images in the order of the log, as they are given, with the type of their change (`CHANGE`).

        `followed`: those that count; None: all. A row that comes to meet the condition is an insert, one that no longer
        meets it a delete. One that does before and after is an update. Both sides of an update must be there, one after
        the other. Raises Unsupported as `rows` does.
        """
        with self._named():
            taken = self._taken(images)
            if taken is not None and followed is not None:
                taken = taken & followed
            return self._given(typed(images, followed if taken is None else taken))

    def _taken(self, rows: Rows) -> Mask | None:
        """Which rows are given; None: all."""
        taken: Mask | None = None
        if self.where is not None:
            held = array_of(self.where.of(rows), rows, pa.bool_())
            taken = np.asarray(pc.fill_null(held, False))
        if self.slice is not None:
            sliced = self.slice.takes(rows)
            taken = sliced if taken is None else taken & sliced
        return taken

    def _given(self, rows: Rows) -> Rows:
        own = {column.name for column in self.source.columns}
        beside = [name for name in rows.schema.names if name not in own]
        arrays = [self._values(output, rows) for output in self.outputs]
        fields = [pa.field(o.column.name, a.type) for o, a in zip(self.outputs, arrays, strict=True)]
        schema = pa.schema([*fields, *(rows.schema.field(name) for name in beside)])
        arrays += [rows.column(name) for name in beside]
        return type(rows).from_arrays(arrays, schema=schema)

    @staticmethod
    def _values(output: Output, rows: Rows) -> pa.Array | pa.ChunkedArray:
        if isinstance(output.value, Field):
            return rows.column(output.value.name)
        return array_of(output.value.of(rows), rows, arrow_type(output.column.type))

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except Unsupported as fault:
            raise Unsupported(f"{self.source.id}: {fault}") from fault


def compiled(rule: Rule, table: Table, collations: Mapping[str, str] | None = None) -> Selection:
    """What a rule that takes a table gives of it. `collations`: those of its columns of texts, by name, as far as they
    are known. Raises ConfigError for what the filter says and cannot be done as the server does it."""
    try:
        return _compiled(rule, table, collations or {})
    except Refused as fault:
        said = f"; its filter is: {rule.filter}" if rule.filter else ""
        raise ConfigError(f"rule for {rule.match}, table {table.id}: {fault}{said}") from None


def _compiled(rule: Rule, table: Table, collations: Mapping[str, str]) -> Selection:
    outputs = tuple(Output(c, Field(c.name, sort_of(c.type, Order.UNKNOWN))) for c in table.columns)
    where = of_key(table, rule.filter) if is_key_range(rule.filter) else None
    if rule.selects:
        # Not above: sqlglot takes half a second to import, and many rules need none.
        from catchment.serve.rules.read_select import read_select

        outputs, where = read_select(rule.filter, table, collations)
    result = Table(table.id, tuple(output.column for output in outputs), _key(outputs, table))
    part = _slice(rule, table)
    needed = {name for output in outputs for name in columns_of(output.value)}
    needed.update(() if where is None else columns_of(where), () if part is None else part.key)
    needs = tuple(column.name for column in table.columns if column.name in needed)
    return Selection(result, needs, table, outputs, where, part)


def _key(outputs: tuple[Output, ...], table: Table) -> tuple[str, ...]:
    """The names of the key's columns in the result; none where one is left out."""
    names = {o.value.name: o.column.name for o in reversed(outputs) if isinstance(o.value, Field)}
    return tuple(names[name] for name in table.key) if names.keys() >= set(table.key) else ()


def _slice(rule: Rule, table: Table) -> Slice | None:
    if rule.of == 1:
        return None
    if not table.key:
        raise Refused("it has no key that slices could be made of; leave of and index out")
    return Slice(table.key, rule.of, rule.index)
