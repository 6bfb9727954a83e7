"""Rows as a feed keeps them: without the columns that its rules exclude, and masked, where rows enter Catchment.

So nothing behind a decoder or a SELECT sees what is not to be kept: no file of a tail, no spilled image, no report.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.column_rule import ColumnRule, Masking, MaskKey, rule_of
from catchment.model.errors import Unsupported
from catchment.model.table import Column
from catchment.wire.cells.types import arrow_type

HIDDEN = "****"
# Types of so many columns are remembered: each task asks for those of each column that it writes, several times.
_TYPES_MAX = 1 << 14

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


def kept_type(rules: Sequence[ColumnRule], column: Column) -> pa.DataType | None:
    """The type of a column's values as they are kept; None where it is excluded. Raises Unsupported."""
    return _kept_type(tuple(rules), column)


@lru_cache(_TYPES_MAX)
def _kept_type(rules: tuple[ColumnRule, ...], column: Column) -> pa.DataType | None:
    rule, kind = rule_of(rules, column.name), arrow_type(column.type)
    if rule is None:
        return kind
    if rule.excluded:
        return None
    if rule.masking is Masking.HMAC and not _has_hmac(kind):
        raise Unsupported(
            f"column {column.name}: a value of type {column.type.kind.value} has no HMAC here: it is for texts, bytes "
            "and integers; mask it with nulls, or exclude it"
        )
    if rule.masking is Masking.PARTIAL and not pa.types.is_string(kind):
        raise Unsupported(
            f"column {column.name}: a value of type {column.type.kind.value} has no last characters; mask it with "
            "nulls or hmac, or exclude it"
        )
    return pa.string() if rule.masking in (Masking.HMAC, Masking.PARTIAL) else kind


class ColumnMasks:
    """The rules of one table's columns, made ready for its rows. `key`: for those with an HMAC."""

    def __init__(self, rules: Sequence[ColumnRule], key: MaskKey | None) -> None:
        self._rules = rules
        self._key = key
        self._known: dict[str, ColumnRule | None] = {}

    def kept(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Those that no rule excludes."""
        return tuple(c for c in columns if not (self._rule(c.name) or _NONE).excluded)

    def applied(self, rows: Rows) -> Rows:
        """The rows as they are kept. Raises Unsupported for values that cannot be masked as asked."""
        if not self._rules or all(self._rule(name) is None for name in rows.schema.names):
            return rows
        values, names = [], []
        for name in rows.schema.names:
            rule = self._rule(name) or _NONE
            if not rule.excluded:
                names.append(name)
                values.append(_masked(name, rows.column(name), rule, self._key))
        return type(rows).from_arrays(values, names=names)

    def _rule(self, name: str) -> ColumnRule | None:
        if name not in self._known:
            self._known[name] = rule_of(self._rules, name)
        return self._known[name]


_NONE = ColumnRule("")


def _has_hmac(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_integer(kind))


def _masked(
    name: str, values: pa.Array | pa.ChunkedArray, rule: ColumnRule, key: MaskKey | None
) -> pa.Array | pa.ChunkedArray:
    if rule.masking is None:
        return values
    if rule.masking is Masking.NULLS:
        return pa.nulls(len(values), values.type)
    if rule.masking is Masking.PARTIAL and pa.types.is_string(values.type):
        return _partial(values, rule.shown)
    if rule.masking is Masking.HMAC and key is not None and _has_hmac(values.type):
        return _hmacs(values, key)
    raise Unsupported(f"column {name}: values of type {values.type} cannot be masked by {rule.masking.value}")


def _partial(values: pa.Array | pa.ChunkedArray, shown: int) -> pa.Array | pa.ChunkedArray:
    """What is not longer than what may be shown is hidden whole."""
    if not shown:
        return pc.if_else(pc.is_valid(values), HIDDEN, pa.scalar(None, pa.string()))
    last = pc.utf8_slice_codeunits(values, -shown, None)
    longer = pc.greater(pc.utf8_length(values), shown)
    return pc.binary_join_element_wise(HIDDEN, pc.if_else(longer, last, ""), "")


def _hmacs(values: pa.Array | pa.ChunkedArray, key: MaskKey) -> pa.Array:
    """Each distinct value is digested once; an integer as its decimal digits."""
    plain = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_integer(plain.type):
        plain = plain.cast(pa.string())
    coded = plain.cast(pa.binary()).dictionary_encode()
    digests = [key.of(value) for value in coded.dictionary.to_pylist()]
    return pa.array(digests, pa.string()).take(coded.indices)
