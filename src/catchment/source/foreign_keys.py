"""A shard's foreign keys that change rows, as its catalog has them now.

information_schema shows foreign keys only to users that may write; SHOW CREATE TABLE needs no more than SELECT.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.model.epoch import Manifest
from catchment.model.errors import SourceError, Unsupported
from catchment.model.foreign_key import Does, ForeignKey
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.schema.foreign_keys import Columns, columns_of, named, refusal, unfollowed
from catchment.source.bounds import source_name
from catchment.source.each_shard import each_shard
from catchment.source.session import Session, answer_behind, connect

_NAME = r"`(?:[^`]|``)+`"
_LIST = rf"\(({_NAME}(?:, ?{_NAME})*)\)"
_KEY = re.compile(
    rf"^ +CONSTRAINT ({_NAME}) FOREIGN KEY {_LIST} REFERENCES ({_NAME}(?:\.{_NAME})?) {_LIST}(.*?),?$", re.M
)
_ON = re.compile(r"ON (DELETE|UPDATE) (CASCADE|SET NULL|SET DEFAULT|RESTRICT|NO ACTION)")
_DOES = {"CASCADE": Does.FOLLOW, "SET NULL": Does.FORGET, "RESTRICT": Does.KEEP, "NO ACTION": Does.KEEP}
_COMPUTED = """
SELECT COUNT(*) FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND GENERATION_EXPRESSION <> ''
"""
REMEDY = "make the key RESTRICT, or have the feed carry its parent"
_LOGS_CHILDREN = (9, 6)
_NO_SUCH_TABLE = 1146


@dataclass(frozen=True, slots=True)
class Cascading:
    """A foreign key that changes rows. `said`: what it does, as its declaration has it. `refused`: why the feed cannot
    carry its child, empty where it can."""

    key: ForeignKey
    said: str
    refused: str

    @property
    def why(self) -> str:
        """Why the child cannot be carried."""
        return (
            f"its foreign key {self.key.name} {self.said} changes rows that are in no log, and {self.refused}"
        )


def logs_children(session: Session) -> bool:
    """Whether rows that foreign keys change are in the log: MySQL 9.6 and later, unless InnoDB does it."""
    version = session.mysql_version
    if version is None or version < _LOGS_CHILDREN:
        return False
    row = session.row("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    return row is None or str(row[1]).upper() == "OFF"


def cascading(session: Session, tables: Mapping[TableId, Columns]) -> list[Cascading]:
    """All keys of these tables that change rows; none where the server logs what they do. Raises SourceError.

    `tables`: as `schema.foreign_keys.refusal` has it.
    """
    if logs_children(session):
        return []
    session.rows("SET sql_quote_show_create = 1")
    declared = [one for table in sorted(tables) for one in _declared(session, table)]
    keys = [one.key for one in declared]
    computed = {table for table in {key.child for key in keys} if _computes(session, table)}
    found = []
    for one in declared:
        refused, key = one.refused or refusal(one.key, tables), one.key
        if not refused:
            why = unfollowed(key, tables, key.child in computed, keys)
            key = replace(named(key, tables), unfollowed=why)
        found.append(Cascading(key, one.said, refused))
    return found


@dataclass(frozen=True, slots=True)
class KeysAmong:
    """The keys between tables of a shard; and the tables that cannot be carried because of keys, with the reasons."""

    keys: tuple[ForeignKey, ...]
    refused: Mapping[TableId, str]


def keys_among(session: Session, tables: Mapping[TableId, Columns]) -> KeysAmong:
    """Those of the tables that are left without the ones refused. Raises SourceError."""
    refused: dict[TableId, str] = {}
    while True:
        left = {table: columns for table, columns in tables.items() if table not in refused}
        found = cascading(session, left)
        if all(not one.refused for one in found):
            return KeysAmong(tuple(one.key for one in found), refused)
        refused |= {one.key.child: one.why for one in found if one.refused}


def uncarried(session: Session, tables: Mapping[TableId, Columns]) -> Mapping[TableId, str]:
    """The tables that cannot be carried because of foreign keys, and their children; and why."""
    return keys_among(session, tables).refused


def carried_keys(session: Session, tables: Mapping[TableId, Columns]) -> tuple[ForeignKey, ...]:
    """The keys between tables that a feed carries. Raises Unsupported for a child that it cannot."""
    found = cascading(session, tables)
    for one in found:
        if one.refused:
            raise Unsupported(f"shard {session.endpoint.shard}, {one.key.child}: {one.why}; {REMEDY}")
    return tuple(one.key for one in found)


def with_keys(standing: Manifest, endpoints: Mapping[str, Endpoint]) -> Manifest:
    """A manifest with the keys that each shard has now; raises SourceError."""

    def asked(shard: str) -> tuple[ForeignKey, ...]:
        here = {copy.table for copy in standing.cut.shards[shard].copies}
        tables = columns_of(shape for shape in standing.shapes if shape.table in here)
        with connect(endpoints[shard], standing.cut.shards[shard].position.server) as session:
            return carried_keys(session, tables)

    states = standing.cut.shards
    found = each_shard(states, asked)
    shards = {shard: replace(state, keys=found[shard]) for shard, state in states.items()}
    return replace(standing, cut=replace(standing.cut, shards=shards))


def _declared(session: Session, table: TableId) -> Iterator[Cascading]:
    """The keys of one table that change rows, with the names that the declaration has."""
    try:
        made = session.row("SHOW CREATE TABLE " + source_name(table))
    except SourceError as refused:
        if answer_behind(refused)[0] == _NO_SUCH_TABLE:
            return  # dropped, as the log will tell
        raise
    for match in _KEY.finditer(str(made[1]) if made else ""):
        rules = dict(_ON.findall(match[5]))
        if all(_DOES.get(rule) is Does.KEEP for rule in rules.values()):
            continue
        (name,), (*schema, parent) = _names(match[1]), _names(match[3])
        does = {what: _DOES.get(rule) for what, rule in rules.items()}
        key = ForeignKey(
            name,
            table,
            _names(match[2]),
            TableId(schema[0] if schema else table.schema, parent),
            _names(match[4]),
            does.get("DELETE") or Does.KEEP,
            does.get("UPDATE") or Does.KEEP,
        )
        unknown = "nobody but the server knows what SET DEFAULT sets" if None in does.values() else ""
        yield Cascading(key, " ".join(f"ON {what} {rule}" for what, rule in rules.items()), unknown)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name[1:-1].replace("``", "`") for name in re.findall(_NAME, text))


def _computes(session: Session, table: TableId) -> bool:
    row = session.row(_COMPUTED, (table.schema, table.name))
    return row is None or row[0] > 0
