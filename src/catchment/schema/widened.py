"""How a lake table's shape follows columns that get another definition, where it leaves every value as it is."""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import SourceError
from catchment.model.table import ColumnType, Kind, TableId
from catchment.model.widened import Declared, Widened
from catchment.schema.ddl import AGAIN
from catchment.schema.redeclared import Redeclared
from catchment.schema.widening import has_length, holds_length, holds_type
from catchment.wire.cells.types import arrow_type


def modified(shape: TableShape, shard: str, said: Redeclared, others: Collection[str]) -> TableShape:
    """The shape after a shard gave a column another definition. `others`: the other shards.

    Raises SourceError where it is not known that the column's values stay as they are.
    """
    column = held(shape, shard, said.column)
    if column is None:
        raise _unknown(shape, shard, said, "is not there")
    if shape.computes:
        raise _unknown(shape, shard, said, "may be one that another is computed from")
    if column.column.name in shape.key:
        raise _unknown(shape, shard, said, "is a part of the key")
    if column.column.name != said.column:
        raise _unknown(shape, shard, said, f"is written {column.column.name} otherwise")
    before, new = shape.type_on(shard, column), said.with_charset(shape.charset)
    if not holds_type(new, before):
        raise _unknown(shape, shard, said)
    if has_length(new):
        shape = _with_length(shape, shard, said, column, others)
    after = typed_on(shape, shard, column, new, others)
    if after is None:
        raise _unknown(shape, shard, said, "is of a type that other shards have not")
    return after


def typed_on(
    shape: TableShape, shard: str, column: LakeColumn, kind: ColumnType, others: Collection[str]
) -> TableShape | None:
    """The shape where a shard has a column in this type, and the lake in one that holds it, too. None where neither of
    the two types holds the other. `others`: the other shards."""
    lake = column.column.type
    if holds_type(lake, kind):
        return _on(shape, column, {shard: kind})
    if not holds_type(kind, lake):
        return None
    behind = {other: shape.type_on(other, column) for other in others if other not in column.missing}
    wider = replace(column, column=replace(column.column, type=kind))
    shape = replace(shape, columns=tuple(wider if one is column else one for one in shape.columns))
    return _on(shape, wider, {**behind, shard: kind}, lake)


def held(shape: TableShape, shard: str, name: str) -> LakeColumn | None:
    """The column of that name, in any case, that a shard has."""
    found = (c for c in shape.columns if c.live and c.column.name.lower() == name.lower())
    return next((c for c in found if shard not in c.missing), None)


def declared_first(shape: TableShape, shards: Mapping[str, Mapping[str, str]]) -> tuple[Declared, ...]:
    """How the texts and bytes of a new shape are declared; `shards`: on each shard, by the names of columns."""
    found: list[Declared] = []
    for column in shape.columns:
        if has_length(column.column.type):
            texts: dict[str, list[str]] = {}
            for shard, declared in sorted(shards.items()):
                if column.column.name in declared:
                    texts.setdefault(declared[column.column.name], []).append(shard)
            _, *fewer = sorted(texts, key=lambda text: -len(texts[text])) or ("",)
            found += [Declared(column.physical, text) for text in texts.keys() - set(fewer)]
            found += [Declared(column.physical, text, tuple(texts[text])) for text in fewer]
    return tuple(found)


def with_declared(
    shape: TableShape, shard: str, said: Iterable[Redeclared], added: Collection[str], others: Collection[str]
) -> TableShape:
    """The shape with what a statement says of columns that were `added` by it, and are there where it ends. `others`:
    the other shards."""
    told = {one.column.lower(): one.declared for one in said}
    for name in added:
        column = held(shape, shard, name)
        if column is not None and has_length(column.column.type):
            shape = _declared_as(shape, shard, column, told.get(name.lower(), ""), others)
    return shape


def same_declaration(
    shape: TableShape, shard: str, former: LakeColumn, new: LakeColumn, others: Collection[str]
) -> TableShape:
    """The shape where a shard declares a column as it did another one. `others`: the other shards."""
    if not has_length(new.column.type):
        return shape
    return _declared_as(shape, shard, new, _declared(shape, shard, former), others)


def declared_as_in(
    shape: TableShape, shard: str, physical: str, other: TableShape, others: Collection[str]
) -> TableShape:
    """The shape where a shard declares a column as it does in another shape. `others`: the other shards."""
    column, its = (next(c for c in one.columns if c.physical == physical) for one in (shape, other))
    if not has_length(column.column.type):
        return shape
    return _declared_as(shape, shard, column, _declared(other, shard, its), others)


def must_be_as_added(new: LakeColumn, told: Iterable[Redeclared], shard: str, table: TableId) -> None:
    """Raise SourceError for a column that is of another type by now than the statement that added it told."""
    kind = replace(new.column.type, charset="")
    for one in told:
        said = replace(one.type, charset="")
        if one.column.lower() == new.column.name.lower() and said != kind and not _may_become(one.type, kind):
            raise unclear(shard, table, one.column)


def _may_become(said: ColumnType, kind: ColumnType) -> bool:
    """Whether a server may have made this of what a declaration says.

    MariaDB makes a text of JSON. In a table whose character set is `binary`, texts are bytes.
    """
    bytes_of_text = said.kind is Kind.TEXT and not said.charset and kind.kind in (Kind.BINARY, Kind.BLOB)
    return bytes_of_text or (said.kind is Kind.JSON and kind.kind is Kind.TEXT)


def unclear(shard: str, table: TableId, column: str) -> SourceError:
    """Of a column that was given another definition or name before its first one is known."""
    return SourceError(
        f"shard {shard}: column {column} of {table} was added, and given another definition or name before a row "
        "showed it; " + AGAIN.format(table=table)
    )


def _with_length(
    shape: TableShape, shard: str, said: Redeclared, column: LakeColumn, others: Collection[str]
) -> TableShape:
    if not holds_length(said.declared, _declared(shape, shard, column)):
        raise _unknown(shape, shard, said)
    return _declared_as(shape, shard, column, said.declared, others)


def _declared(shape: TableShape, shard: str, column: LakeColumn) -> str:
    """How a column is declared on a shard."""
    mine = [one for one in shape.declared if one.column == column.physical]
    own = next((one.text for one in mine if shard in one.shards), None)
    return own if own is not None else next((one.text for one in mine if not one.shards), "")


def _declared_as(
    shape: TableShape, shard: str, column: LakeColumn, text: str, others: Collection[str]
) -> TableShape:
    """The shape where a shard declares a column so. What it declares last is noted as that of all others, so that the
    note is short once all shards have followed."""
    notes = [one for one in shape.declared if one.column != column.physical]
    mine = [one for one in shape.declared if one.column == column.physical]
    texts = {one.text: set(one.shards).intersection(others) for one in mine if one.shards}
    rest = next((one.text for one in mine if not one.shards), "")
    texts.setdefault(rest, set()).update(
        set(others).difference(column.missing, *(one.shards for one in mine))
    )
    texts.pop(text, None)
    notes.append(Declared(column.physical, text))
    notes += [
        Declared(column.physical, its, tuple(sorted(shards))) for its, shards in texts.items() if shards
    ]
    return replace(shape, declared=tuple(notes))


def _on(
    shape: TableShape, column: LakeColumn, types: Mapping[str, ColumnType], was: ColumnType | None = None
) -> TableShape:
    """The shape where shards have these types of a column; `was`: of the lake's column until now."""
    lake = column.column.type
    former: dict[ColumnType, set[str]] = {}
    for one in shape.widened:
        if one.column == column.physical:
            former[one.type] = set(one.shards) - types.keys()
    if was is not None:
        former.setdefault(was, set())
    for shard, kind in types.items():
        if kind != lake:
            former.setdefault(kind, set()).add(shard)
    others = tuple(one for one in shape.widened if one.column != column.physical)
    # Files of a type that Arrow does not tell from the lake's are as they should be.
    mine = tuple(
        Widened(column.physical, kind, tuple(sorted(shards)))
        for kind, shards in former.items()
        if shards or arrow_type(kind) != arrow_type(lake)
    )
    return replace(shape, widened=(*others, *mine))


def _unknown(shape: TableShape, shard: str, said: Redeclared, why: str = "") -> SourceError:
    what = f", and it {why}" if why else " that is not known to leave its values as they are"
    return SourceError(
        f"shard {shard}: column {said.column} of {shape.table} was given another definition{what}; "
        + AGAIN.format(table=shape.table)
    )
