"""Checks of the tables that the rules choose: what cannot be carried is refused by name."""

from collections.abc import Mapping, Sequence

import msgspec

from catchment.config import takes
from catchment.config.table_patterns import SYSTEM_SCHEMAS
from catchment.doctor.access import quoted
from catchment.doctor.date_checks import check_dates
from catchment.doctor.family_checks import check_families
from catchment.doctor.finding import Finding, Severity
from catchment.model.chunk import chunk_key
from catchment.model.errors import CatchmentError, Unsupported
from catchment.model.table import RESERVED, Table, TableId
from catchment.source.bounds import LISTED_MAX, is_ranged, table_size
from catchment.source.catalog import left_out_columns, read_table
from catchment.source.session import Session

_LISTED = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS FROM information_schema.TABLES
WHERE TABLE_SCHEMA NOT IN %s ORDER BY 1, 2
"""
_OF_REGEX = "; a `/regex/` is compared with the whole of schema.table"
_VIEWS = ("VIEW", "SYSTEM VIEW")
_KINDS = {"SEQUENCE": "a sequence", "SYSTEM VERSIONED": "system-versioned"}

# All rows of one value of the columns that chunks are cut by stand in one chunk, in the memory of a worker. So does a
# whole table while it is verified, if only the server knows the order of its key.
VALUE_BYTES_MAX = 256 << 20
_PER_VALUE = """
SELECT MIN(t.TABLE_ROWS / GREATEST(s.CARDINALITY, 1)), MIN(t.AVG_ROW_LENGTH)
FROM information_schema.STATISTICS AS s JOIN information_schema.TABLES AS t USING (TABLE_SCHEMA, TABLE_NAME)
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND s.NON_UNIQUE = 0 AND s.SEQ_IN_INDEX = %s AND s.COLUMN_NAME = %s
"""


class Listed(msgspec.Struct, frozen=True):
    """A table as the catalog lists it: `kind` is its TABLE_TYPE, `rows` the server's estimate."""

    table: TableId
    kind: str
    engine: str
    rows: int


def chosen_tables(session: Session, rules: Sequence[str]) -> list[Listed]:
    """Everything but views that the rules take and the user can see."""
    listed = [
        Listed(TableId(schema, name), kind, engine, int(rows or 0))
        for schema, name, kind, engine, rows in session.rows(_LISTED, (tuple(SYSTEM_SCHEMAS),))
    ]
    return [entry for entry in listed if entry.kind not in _VIEWS and takes(rules, entry.table)]


def check_tables(
    session: Session,
    chosen: Sequence[Listed],
    *,
    skip: bool = False,
) -> tuple[list[Finding], dict[TableId, Table]]:
    """Findings about the chosen tables of one shard, and the definitions of those that can be carried.

    `skip`: tables that cannot be carried are left out.
    """
    shard = session.endpoint.shard
    findings: list[Finding] = []
    tables: dict[TableId, Table] = {}
    refused = Severity.WARNING if skip else Severity.ERROR
    for listed in chosen:
        table = listed.table
        refusal = _refusal(shard, listed)
        if refusal is not None:
            findings.append(msgspec.structs.replace(refusal, severity=refused))
            continue
        try:
            tables[table] = read_table(session, table, RESERVED)
            findings += _crowded(session, tables[table])
            findings += _scanned(shard, tables[table])
        except Unsupported as error:
            findings.append(Finding(refused, shard, str(error), "it cannot be copied"))
        except CatchmentError as error:
            findings.append(Finding(Severity.ERROR, shard, str(error), "it cannot be copied"))
    families, tables = check_families(session, tables, refused)
    return [*findings, *families, *check_dates(session, tables)], tables


def check_images(
    session: Session,
    variables: Mapping[str, str],
    tables: Sequence[TableId],
) -> list[Finding]:
    """Tables of which row events lack columns, and those of which they never do, where binlog_row_image is
    NOBLOB. FULL and MINIMAL: settings.py.
    """
    if variables.get("binlog_row_image", "").upper() != "NOBLOB":
        return []
    shard = session.endpoint.shard
    left_out = left_out_columns(session)
    whole = [str(table) for table in tables if table not in left_out]
    fit = f"binlog_row_image is NOBLOB and leaves nothing out of {', '.join(whole)}"
    return [Finding(Severity.OK, shard, fit)] * bool(whole) + [
        Finding(
            Severity.ERROR,
            shard,
            f"binlog_row_image is NOBLOB and leaves columns out of {table}: {left_out[table]}",
            "a row cannot be told from an event without them; the feed stops at the first such event",
            "SET GLOBAL binlog_row_image=FULL; it is a session setting too: sessions that exist keep theirs until "
            f'they connect again; or add "!{table}" to `tables`',
        )
        for table in tables
        if table in left_out
    ]


def check_filters(shard: str, only: str, ignored: str, tables: Sequence[TableId]) -> list[Finding]:
    """Tables whose schema binlog_do_db or binlog_ignore_db keeps out of the log."""
    kept, left_out = set(filter(None, only.split(","))), set(filter(None, ignored.split(",")))
    unlogged = sorted({t.schema for t in tables if (kept and t.schema not in kept) or t.schema in left_out})
    if not unlogged:
        return []
    return [
        Finding(
            Severity.ERROR,
            shard,
            f"binlog_do_db ({only or 'none'}) or binlog_ignore_db ({ignored or 'none'}) "
            f"keeps changes of {', '.join(unlogged)} out of the log",
            "such changes never reach the lake",
            "start the server without these filters, or exclude the tables",
        )
    ]


def compare_shards(defined: Mapping[str, Mapping[TableId, Table]]) -> list[Finding]:
    """Differences in the definitions of one table on several shards (only of tables that can be carried)."""
    findings: list[Finding] = []
    for table in sorted({table for tables in defined.values() for table in tables}):
        absent = [shard for shard, tables in defined.items() if table not in tables]
        for shard in absent:
            found = f"{table} is on other shards but not, or not usable, on this one"
            findings.append(
                Finding(Severity.WARNING, shard, found, "its rows come from the other shards alone")
            )
        present = [(shard, tables[table]) for shard, tables in defined.items() if table in tables]
        (first, model), *others = present
        for shard, other in others:
            difference = _difference(model, other)
            if difference:
                findings.append(
                    Finding(
                        Severity.ERROR,
                        shard,
                        f"{table} differs from that on shard {first}: {difference}",
                        "rows of one lake table would have two shapes",
                        f"ALTER TABLE {quoted(table)} on one of the shards, or exclude it",
                    )
                )
    return findings


def unmatched_rules(rules: Sequence[str], seen: set[TableId]) -> list[Finding]:
    """Rules that take no table on any shard: a slip of the pen, or a missing SELECT privilege."""
    idle = [rule for rule in rules if not rule.startswith("!") and not any(takes([rule], t) for t in seen)]
    risk = "the table is not there, or the feed's user may not SELECT it"
    return [
        Finding(
            Severity.ERROR,
            "",
            f"rule {rule} takes no table on any shard",
            risk,
            "correct `tables`" + (_OF_REGEX if rule.startswith("/") else ""),
        )
        for rule in idle
    ]


def _refusal(shard: str, listed: Listed) -> Finding | None:
    table, engine = listed.table, listed.engine
    if listed.kind in _KINDS:
        found, remedy = f"{table} is {_KINDS[listed.kind]}", f'add "!{table}" to `tables`'
        return Finding(Severity.ERROR, shard, found, "it cannot be copied exactly", remedy)
    if engine != "InnoDB":
        return Finding(
            Severity.ERROR,
            shard,
            f"{table} has the engine {engine}",
            "without transactions, what the log says and what a SELECT shows are not the same",
            f'ALTER TABLE {quoted(table)} ENGINE=InnoDB, or add "!{table}" to `tables`',
        )
    return None


def _crowded(session: Session, table: Table) -> list[Finding]:
    """Warns of a key that chunks cut by its first columns alone, if by the server's estimate one value of them has very
    many rows. Warns of a large table of which only the server knows the order."""
    key = chunk_key(table)
    cut_by = [column.name for column in key.columns]
    if not key.ordered:
        return _verified_whole(session, table)
    if len(cut_by) == len(table.key):
        return []
    row = session.row(_PER_VALUE, (table.id.schema, table.id.name, len(cut_by), cut_by[-1]))
    rows, row_bytes = (float(value or 0) for value in row or (0, 0))
    if rows * row_bytes <= VALUE_BYTES_MAX:
        return []
    names, other = ", ".join(cut_by), table.key[len(cut_by)]
    return [
        Finding(
            Severity.WARNING,
            session.endpoint.shard,
            f"{table.id} has about {rows:,.0f} rows for each value of ({names})",
            f"they are copied in one chunk, of about {rows * row_bytes / 2**20:,.0f} MB in the memory of a worker: the "
            f"order of {other} is known to the server alone",
            f'give the workers that much memory, or add "!{table.id}" to `tables`',
        )
    ]


def _verified_whole(session: Session, table: Table) -> list[Finding]:
    size = table_size(session, table.id)
    rows, row_bytes = size.rows, size.row_bytes
    if rows * row_bytes <= VALUE_BYTES_MAX:
        return []
    return [
        Finding(
            Severity.WARNING,
            session.endpoint.shard,
            f"{table.id} has about {rows:,} rows, and the order of its key ({', '.join(table.key)}) is known to the "
            "server alone",
            f"it is copied in parts, but `catchment verify` holds all its rows of this shard and of the lake, about "
            f"{rows * row_bytes / 2**20:,.0f} MB each, in the memory of a worker",
            "give the workers that much memory, or verify the other tables alone (`--table`)",
        )
    ]


def _scanned(shard: str, table: Table) -> list[Finding]:
    """A key that begins with a SET or ENUM of very many values: no server reads a range of it."""
    key = chunk_key(table)
    if is_ranged(key):
        return []
    return [
        Finding(
            Severity.WARNING,
            shard,
            f"the key of {table.id} begins with {key.columns[0].name}, an ENUM or SET of more than {LISTED_MAX} values",
            "the server reads the whole table for every chunk of it",
            f'copy it at a quiet time, with a large copy.chunk_rows_max, or add "!{table.id}" to `tables`',
        )
    ]


def _difference(a: Table, b: Table) -> str:
    if a.key != b.key:
        return f"key ({', '.join(b.key)}) instead of ({', '.join(a.key)})"
    left, right = {c.name: c.type for c in a.columns}, {c.name: c.type for c in b.columns}
    said = [f"column {name} is missing" for name in left if name not in right]
    said += [f"column {name} is only here" for name in right if name not in left]
    said += [
        f"column {n} is {right[n]} instead of {left[n]}" for n in left if n in right and left[n] != right[n]
    ]
    return "; ".join(said)
