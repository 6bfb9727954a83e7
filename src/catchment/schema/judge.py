"""What a statement that the log holds as text did to the rows of the chosen tables.

Each statement is read once, and is one of four kinds (verbs.py). What is known to leave rows alone passes. DDL acts on
what it names (ddl.py). What may change rows reaches all that it leads to (reach.py). What is not known stops.
"""

from collections.abc import Collection
from dataclasses import dataclass

from catchment.model.table import TableId
from catchment.schema.ddl import BY_ROWS, HARMLESS, Effect, Here, Stop, effect_of
from catchment.schema.names import without_marks
from catchment.schema.reach import Objects, Reach, reached
from catchment.schema.text import Text, read_text
from catchment.schema.verbs import Act

_ALL_AGAIN = "set binlog_format=ROW for every session, and copy the tables again"


@dataclass(frozen=True, slots=True)
class ByText(Stop):
    """A statement logged as text may have changed rows of `tables`, of which `table` is one.

    `shown`: it did so for all that is known; False: it cannot be shown that it did not.
    """

    tables: frozenset[TableId] = frozenset()
    shown: bool = True


def judge(
    sql: str,
    default_schema: str,
    chosen: Collection[TableId],
    objects: Objects | None,
    *,
    here: Here | None = None,
    mysql: bool = False,
    sql_mode: int | None = None,
) -> Effect:
    """What the statement `sql` of a log did to the `chosen` tables; never raises.

    `objects`: what is stored on the shard, as of the statement. None where that is not known: then every statement
    that may change rows is a Stop. The rest as `ddl.effect` takes it.
    """
    text = read_text(sql, default_schema, mysql=mysql, sql_mode=sql_mode)
    return judged(text, effect_of(text, chosen, here), chosen, objects, here=here)


def judged(
    text: Text,
    defined: Effect,
    chosen: Collection[TableId],
    objects: Objects | None,
    *,
    here: Here | None = None,
) -> Effect:
    """As `judge`, of a statement that is read; `defined`: what it does as DDL."""
    if not chosen:
        return HARMLESS
    found: list[Effect] = []
    if Act.NOT_KNOWN in text.kinds:
        why = (
            f"it cannot be read: {text.unreadable}"
            if text.unreadable
            else "it is not a statement that is known"
        )
        found.append(_by_text(chosen, f"{why}, so it may have changed any table", shown=False))
    if Act.DEFINES in text.kinds:
        found.append(defined)
    if text.changes_rows:
        mine = [table for table in chosen if here is None or table in here]
        found.append(_reaching(text, mine, objects))
    return next((one for one in found if isinstance(one, Stop)), found[0] if found else HARMLESS)


def _reaching(text: Text, mine: Collection[TableId], objects: Objects | None) -> Effect:
    if not mine:
        return HARMLESS
    reach = reached(text.names, objects or Objects({}))
    names = {table: (without_marks(table.schema), without_marks(table.name)) for table in mine}
    hit = {table: reach.names[name] for table, name in names.items() if name in reach.names}
    if hit:
        first = min(hit, key=lambda table: (hit[table] != "", table))
        through = f", which names {first}" if not hit[first] else f", which leads to {first} by {hit[first]}"
        return _by_text(hit, f"its rows may have been changed by it{through}", first=first)
    unseen = _unseen(reach, objects)
    return _by_text(mine, *unseen, shown=False) if unseen else HARMLESS


def not_shown(tables: Collection[TableId], why: str) -> ByText:
    """A statement of which it is not known that it left `tables` alone."""
    return _by_text(tables, why, shown=False)


def _unseen(reach: Reach, objects: Objects | None) -> tuple[str, str] | None:
    """Why it is not known that a statement leaves the chosen tables alone, and the way out; None when it is."""
    if objects is None:
        return "what it leads to by views, triggers and routines is not known", ""
    hiding = min((name for name in reach.names if objects.hides(name)), default=None)
    if hiding:
        lacking = ", ".join(objects.lacking)
        through = "" if objects.hidden is None else f" of {'.'.join(hiding)}"
        return (
            f"views, triggers and routines{through} by which it may change chosen tables do not show without the "
            f"privileges {lacking} on *.*",
            f"GRANT {lacking} ON *.* to the feed's user and run again, which loses nothing where the statement leaves "
            f"the chosen tables alone; or {_ALL_AGAIN}",
        )
    return (f"it cannot be told what it changes by {reach.obscure}", "") if reach.obscure else None


def _by_text(
    tables: Collection[TableId],
    reason: str,
    way_out: str = "",
    *,
    first: TableId | None = None,
    shown: bool = True,
) -> ByText:
    table = first or min(tables)
    way_out = way_out or (BY_ROWS.format(table=table) if len(tables) == 1 else _ALL_AGAIN)
    return ByText(table, reason, way_out, frozenset(tables), shown)
