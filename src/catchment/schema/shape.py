"""The shape of a lake table, and how it follows the columns of the source tables on all shards (DESIGN 4, 5).

A column of the lake is never taken away: when every shard has dropped it, it is no longer live. A name that
is added again gets a new physical column, so that values from before the DROP cannot come back. MariaDB
compares column names without regard to case; so does this module.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from catchment.model.column_rule import rule_of
from catchment.model.emptied import emptied_too
from catchment.model.epoch import LakeColumn, TableShape
from catchment.model.errors import ConfigError, SourceError, Unsupported
from catchment.model.fill import Fill
from catchment.model.table import (
    ENDED,
    RESERVED,
    VALID_FROM,
    VALID_TO,
    Column,
    Kind,
    Table,
    Wording,
    without_case,
)
from catchment.model.treatment import PLAIN, Mode, Treatment
from catchment.schema.ddl import AGAIN, Columns
from catchment.schema.filling import Filled
from catchment.schema.lake_columns import (
    after_add,
    after_drop,
    by_name,
    is_named,
    lacking,
    must_be_free,
    new_column,
    physical_name,
    shown_as,
)
from catchment.schema.last_names import name_behind, names_after
from catchment.schema.renaming import with_new_name
from catchment.schema.widened import declared_first, modified, must_be_as_added, unclear, with_declared
from catchment.wire.cells.masks import kept_type
from catchment.wire.cells.types import logged_as_binary

_NOT_ASCII = ("swe7",)  # a part of ASCII's characters is other letters there


def first_shape(
    table: Table,
    shards: Mapping[str, Table] | None = None,
    treatment: Treatment = PLAIN,
    wordings: Mapping[str, Wording] | None = None,
) -> TableShape:
    """The shape of a lake table that begins with the columns of `table`. With several shards `table` is what
    `merge(shards)` gave, and each column notes the shards that lack it. `treatment`: what the feed makes of it.
    `wordings`: of the table on these shards, if they are known.

    Raises ConfigError for rules of columns that the table cannot have.
    """
    columns: list[LakeColumn] = []
    taken: set[str] = set()
    for column in table.columns:
        physical = physical_name(shown_as(column.name, treatment.rules), taken)
        columns.append(LakeColumn(column, physical, missing=lacking(column.name, shards or {})))
        taken.add(without_case(physical))
    shape = TableShape(
        table.id,
        tuple(columns),
        table.key,
        treatment.rules,
        treatment.mode,
        arrangement=treatment.arrangement,
    )
    must_fit(shape)
    return _worded(shape, wordings or {})


def _worded(shape: TableShape, wordings: Mapping[str, Wording]) -> TableShape:
    charsets = {one.charset for one in wordings.values()}
    declared = declared_first(shape, {shard: one.columns for shard, one in wordings.items()})
    charset = charsets.pop() if len(charsets) == 1 else ""
    computes = not wordings or any(one.computes for one in wordings.values())
    return replace(shape, declared=declared, charset=charset, computes=computes)


def must_fit(shape: TableShape) -> None:
    """Raise ConfigError where rules exclude or mask a part of the key, mask what they cannot, or give a name twice."""
    where = f"columns: {shape.table}"
    for name in shape.key:
        rule = rule_of(shape.rules, name)
        if rule is not None and (rule.excluded or rule.masking):
            raise ConfigError(
                f"{where}, {name}: it is a part of the key, which tells rows apart, so it can be neither excluded nor "
                "masked; take it out of the rule"
            )
    for one in shape.kept:
        try:
            kept_type(shape.rules, one.column)
        except Unsupported as error:
            raise ConfigError(f"{where}, {error}") from None
    seen: dict[str, str] = {}
    versioned = (ENDED, VALID_FROM, VALID_TO) if shape.mode is Mode.HISTORY else ()
    added = (*versioned, *(name for name in [shape.partition_column] if name is not None))
    own = {*RESERVED, *map(without_case, added)}
    for one in shape.kept if shape.rules or added else ():
        name, source = without_case(shape.name_of(one)), one.column.name
        if name in own or name in seen:
            of = "the lake's tables themselves" if name in own else f"column {seen[name]}"
            raise ConfigError(
                f"{where}, {source}: its name would be {shape.name_of(one)}, which is that of {of}"
            )
        seen[name] = source


def logged_kinds(shape: TableShape) -> dict[str, Kind]:
    """The columns that the log declares as BINARY and are something else, by their names at the source."""
    return logged_as_binary(c.column for c in shape.columns if c.live)


def evolve(
    shape: TableShape,
    table: Table,
    effects: Sequence[Columns],
    epoch: int,
    *,
    shard: str,
    others: Mapping[str, Table],
    before: int | None = None,
) -> TableShape:
    """The shape after `effects`, in order, made `shard`'s table into `table` in `epoch`. Rows of epochs before `before`
    get the values that columns come with; those of the epoch itself have them, if it is not given.

    `others`: the table as the other shards have it. When several shards change in one epoch, call once for
    each, and let the shards that come later stand in `others` as they were before. A column stays live while
    any shard has it. An ADD of a column that the shard has, or a DROP of one that it has not, was said with
    IF [NOT] EXISTS. It changes nothing.

    Raises SourceError when `table` is not what the effects make of `shape` (another type or key, a column too
    many or missing). Raises Unsupported when a column is added again while another shard has its former self,
    or has a name that the lake reserves. Raises ValueError when the arguments are not of one table.
    """
    if shape.table != table.id or any(e.table != table.id for e in effects):
        raise ValueError(f"shape of {shape.table}, table {table.id} and effects are not of one table")
    added = set[str]()
    for place, effect in enumerate(effects):
        later = effects[place + 1 :]
        for name in effect.dropped:
            columns = tuple(after_drop(c, name, shard, others) for c in shape.columns)
            shape = replace(shape, columns=columns)
        shape = _redefined(shape, effect, shard, others, epoch, added)
        for name in effect.added:
            new = _new(shape, name, table, epoch, others)
            if new is not None:
                must_be_free(name, shard, table.id)
                if name_behind(name, later) is not None:
                    must_be_as_added(new, effect.declared, shard, table.id)
            shape = replace(shape, columns=after_add(shape.columns, name, shard, new, table.id))
        if effect.emptied:
            shape = _emptied(shape, shard, epoch)
        added |= {name.lower() for name in effect.added}
        shape = with_declared(shape, shard, effect.declared, effect.added, others)
        shape = _filled(shape, lasts(effect, later), shard, before or epoch)
    faults = _faults(shape, table, shard) + _untrue(table, effects)
    if faults:
        raise SourceError(
            f"shard {shard}: {table.id} does not match its lake table: {'; '.join(faults)}; "
            + AGAIN.format(table=table.id)
        )
    return shape


def _redefined(
    shape: TableShape,
    effect: Columns,
    shard: str,
    others: Mapping[str, Table],
    epoch: int,
    added: Collection[str],
) -> TableShape:
    """The shape after columns got other definitions and names; `added`: by effects before. Raises SourceError."""
    for name in (*(one.column for one in effect.modified), *(one.old for one in effect.renamed)):
        if name.lower() in added:
            raise unclear(shard, shape.table, name)
    for told in effect.modified:
        shape = modified(shape, shard, told, others)
    for one in effect.renamed:
        shape = with_new_name(shape, shard, one, others, epoch)
    return shape


def _new(
    shape: TableShape, name: str, table: Table, epoch: int, others: Mapping[str, Table]
) -> LakeColumn | None:
    """A column that the lake has not. None where it has it, or when a later effect drops it again: no row has a value
    then."""
    there = any(c.live and is_named(c, name) for c in shape.columns)
    column = None if there else by_name(table).get(name.lower())
    return None if column is None else new_column(column, epoch, shape.columns, others, shape.rules)


def must_fit_still(shape: TableShape, shard: str) -> None:
    """Raise Unsupported where a column that was added cannot have what the rules ask for."""
    try:
        must_fit(shape)
    except ConfigError as error:
        raise Unsupported(
            f"shard {shard}: {error}; drop it again, then start the run again: it goes on"
        ) from None


def merge(tables: Mapping[str, Table]) -> Table:
    """The union of one table's columns on all shards (by shard name). It has those of the first shard in the
    order of names, then what the next ones have more. Columns may be missing on some shards.

    Raises SourceError that lists every difference in key and types.
    """
    shards = sorted(tables)
    if not shards:
        raise ValueError("no shard has the table")
    first = tables[shards[0]]
    union: dict[str, tuple[str, Column]] = {}
    faults: list[str] = []
    for shard in shards:
        table = tables[shard]
        if table.id != first.id:
            raise ValueError(f"{first.id} on {shards[0]} and {table.id} on {shard} are two tables")
        if table.key != first.key:
            faults.append(f"key {_key(first)} on {shards[0]}, {_key(table)} on {shard}")
        faults += [f"{pair} on {shard}" for pair in _alike(table)]
        for column in table.columns:
            owner, known = union.setdefault(column.name.lower(), (shard, column))
            if known != column:
                faults.append(f"column {_say(known)} on {owner}, {_say(column)} on {shard}")
    if faults:
        raise SourceError(
            f"{first.id} is not the same on all shards: {'; '.join(faults)}; "
            f'make the definitions equal or add "!{first.id}" to `tables`'
        )
    return Table(first.id, tuple(column for _, column in union.values()), first.key)


def _emptied(shape: TableShape, shard: str, epoch: int) -> TableShape:
    """The shape behind a TRUNCATE. Of its epoch a segment brings what follows it. Raises SourceError for a mode that
    keeps more than the rows of now."""
    if shape.mode is not Mode.MIRROR:
        raise SourceError(
            f"shard {shard}: {shape.table} was truncated, which logs no rows, and its mode is {shape.mode.value}, "
            "which keeps the past of each row; " + AGAIN.format(table=shape.table)
        )
    return replace(shape, emptied=emptied_too(shape.emptied, shard, epoch))


def lasts(effect: Columns, later: Iterable[Columns]) -> list[Filled]:
    """The values that an effect gave to rows, of columns that none of the `later` ones drops."""
    following = tuple(later)
    return [told for told in effect.filled if name_behind(told.column, following) is not None]


def _filled(shape: TableShape, lasting: Iterable[Filled], shard: str, before: int) -> TableShape:
    """The shape with the values of columns that came with some."""
    for told in lasting:
        for known in shape.columns:
            if known.live and is_named(known, told.column):
                value = _value_of(known, told, shape, shard)
                shape = shape.filled(shard, Fill(known.physical, (), before, value))
    return shape


def _value_of(known: LakeColumn, told: Filled, shape: TableShape, shard: str) -> str:
    """The value that a column came with. Raises SourceError where it is another than the statement says, or its values
    are not kept as they are."""
    kind, rule = known.column.type, rule_of(shape.rules, known.column.name)
    why = ""
    if replace(kind, charset="") != told.type or kind.charset in _NOT_ASCII:
        why = "is another by now than the statement says"
    elif rule is not None and rule.masking:
        why = "is masked"
    elif shape.mode is Mode.APPEND:
        why = "would be new in changes of before, which the mode keeps as they were"
    if why:
        raise SourceError(
            f"shard {shard}: column {known.column.name} of {shape.table} was added with a value in every row, and it "
            f"{why}; " + AGAIN.format(table=shape.table)
        )
    assert told.value is not None
    return told.value


def _alike(table: Table) -> list[str]:
    """Columns whose names differ in nothing but the case of a letter, which servers do not know of all letters."""
    first = {c.name.lower(): c.name for c in reversed(table.columns)}
    return [
        f"columns {first[c.name.lower()]} and {c.name} differ only in the case of a letter"
        for c in table.columns
        if c.name != first[c.name.lower()]
    ]


def _faults(shape: TableShape, table: Table, shard: str) -> list[str]:
    """How `table` differs from what the shape says that the shard has."""
    faults = _alike(table)
    if table.key != shape.key:
        faults.append(f"its key is {_key(table)}, the lake's ({', '.join(shape.key)})")
    live = {c.column.name.lower(): c for c in shape.columns if c.live}
    here = by_name(table)
    for name, column in here.items():
        if name not in live or shard in live[name].missing:
            faults.append(f"column {_say(column)} is new without an ADD COLUMN in the log")
        elif column.name != live[name].column.name:
            faults.append(f"column {column.name} is written {live[name].column.name} on other shards")
        elif column.type != shape.type_on(shard, live[name]):
            was = _say(live[name].column)
            faults.append(f"column {_say(column)} has another type than in the lake, {was}")
    for name, lake in live.items():
        if name not in here and shard not in lake.missing:
            faults.append(f"column {lake.column.name} is missing without a DROP COLUMN in the log")
    return faults


def _untrue(table: Table, effects: Sequence[Columns]) -> list[str]:
    """Columns that came last of all and are not there: `table` is older than the effects."""
    here, there = by_name(table), names_after(effects)
    return [f"column {n} was added but is not there" for n, stays in there.items() if stays and n not in here]


def _key(table: Table) -> str:
    return f"({', '.join(table.key)})"


def _say(column: Column) -> str:
    kind = column.type
    size = f"({kind.length}, {kind.scale})" if kind.length or kind.scale else ""
    labels = f" {kind.labels}" if kind.labels else ""
    unsigned = " unsigned" if kind.unsigned else ""
    return f"{column.name} {kind.kind.value}{size}{labels}{unsigned} {kind.charset}".rstrip()
