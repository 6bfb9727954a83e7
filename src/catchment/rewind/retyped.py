"""Columns that had several types in one stretch of log: dropped, and added again with another one (DESIGN 4).

Only the end of the stretch tells which type came last. Until then images have a column for each type: the
first one met under the name itself, the others under name and type.
"""

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.image import DELETED, INTERNAL

_OURS = frozenset({*INTERNAL, DELETED})
_MARK = "\0"  # in no name of a column: a syntax error on every server, and refused by the log's decoder


class Retyped:
    """Tells the types of one table's columns apart, but not of `key` columns, whose DROP is not followed."""

    def __init__(self, key: Collection[str]) -> None:
        self._key = frozenset(key)
        self._first: dict[str, pa.DataType] = {}

    def apart(self, images: pa.Table) -> pa.Table:
        """The images with a name of their own for columns of another type than the first images had."""
        names = [self._name(field) for field in images.schema]
        return images if names == images.schema.names else images.rename_columns(names)

    def _name(self, field: pa.Field) -> str:
        first = self._first.setdefault(field.name, field.type)
        known = field.type == first or field.name in self._key
        return field.name if known else apart_name(field.name, field.type)


def apart_name(column: str, kind: pa.DataType) -> str:
    """The name of a column of images of which another one has the name itself."""
    return f"{column}{_MARK}{kind}"


def source_name(column: str) -> str:
    """The name at the source of a column of images."""
    return column.partition(_MARK)[0]


def together(images: pa.Table, types: Mapping[str, pa.DataType], widened: Collection[str] = ()) -> pa.Table:
    """Images of which columns have the name and, as far as they have values, the type that `types` says. Of `widened`
    columns values of former types are brought to it.

    Values of what was dropped must be gone (states.without_values). Raises ValueError that names a column with
    values of another type, or with values and not in `types`: they would be lost.
    """
    for name in widened:
        if name in types:
            images = _widened(images, name, types[name])
    for at, field in reversed(list(enumerate(images.schema))):
        name = source_name(field.name)
        if field.type == types.get(name) or name in _OURS:
            continue
        if images.column(at).null_count < images.num_rows:
            known = f"of type {types[name]}" if name in types else "its table does not have it"
            raise ValueError(f"column {name} has values of type {field.type}, and {known}")
        images = images.remove_column(at)
    known, names = images.schema.names, [source_name(name) for name in images.schema.names]
    return images if names == known else images.rename_columns(names)


def _widened(images: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    """The images with one column for all types that a column had: each of them has a value in one at most."""
    places = [at for at, field in enumerate(images.schema) if source_name(field.name) == name]
    if not any(images.schema.field(at).type != kind for at in places):
        return images
    held = [images.column(at) for at in places]
    valued = [values.cast(kind) for values in held if values.null_count < images.num_rows]
    for at in reversed(places):
        images = images.remove_column(at)
    return images.append_column(name, pc.coalesce(*valued)) if valued else images
