"""A shard's foreign keys that change rows, as its catalog has them now.

information_schema shows foreign keys only to users that may write; SHOW CREATE TABLE needs no more than SELECT.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from catchment.model.epoch import Manifest
from catchment.model.errors import SourceError, Unsupported
from catchment.model.foreign_key import Does, ForeignKey
from catchment.model.shard import ShardState
from catchment.model.table import TableId
from catchment.schema.foreign_keys import Columns, columns_of, named, refusal, unfollowed
from catchment.source.bounds import source_name
from catchment.source.session import Session, answer_behind

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


@dataclass(frozen=True, slots=True)
class DeclaredKeys:
    """What tables declare: the keys of each that change rows, with the names that it has for columns, and which of them
    have generated columns."""

    keys: Mapping[TableId, tuple[Cascading, ...]]
    computed: frozenset[TableId]

    def among(self, tables: Mapping[TableId, Columns]) -> list[Cascading]:
        """All keys of these tables, which are some of those asked for. `tables`: as `schema.foreign_keys.refusal` has
        it."""
        declared = [one for table in sorted(tables) for one in self.keys.get(table, ())]
        keys = [one.key for one in declared]
        found = []
        for one in declared:
            refused, key = one.refused or refusal(one.key, tables), one.key
            if not refused:
                why = unfollowed(key, tables, key.child in self.computed, keys)
                key = replace(named(key, tables), unfollowed=why)
            found.append(Cascading(key, one.said, refused))
        return found

    def usable_among(self, tables: Mapping[TableId, Columns]) -> "KeysAmong":
        """Those of the tables that are left without the ones refused. `tables`: as for `among`."""
        refused: dict[TableId, str] = {}
        while True:
            found = self.among({table: columns for table, columns in tables.items() if table not in refused})
            if all(not one.refused for one in found):
                return KeysAmong(tuple(found), refused)
            refused |= {one.key.child: one.why for one in found if one.refused}

    def carried(self, shard: str, tables: Mapping[TableId, Columns]) -> tuple[ForeignKey, ...]:
        """The keys between tables that a feed carries from a shard. Raises Unsupported for a child that it cannot."""
        found = self.among(tables)
        for one in found:
            if one.refused:
                raise Unsupported(f"shard {shard}, {one.key.child}: {one.why}; {REMEDY}")
        return tuple(one.key for one in found)


@dataclass(frozen=True, slots=True)
class KeysAmong:
    """The keys between tables of a shard; and the tables that cannot be carried because of keys, with the reasons."""

    keys: tuple[Cascading, ...]
    refused: Mapping[TableId, str]


NO_KEYS: Final = DeclaredKeys({}, frozenset())


def declared_keys(session: Session, tables: Iterable[TableId]) -> DeclaredKeys:
    """The keys of some tables; none where the server logs what they do. Raises SourceError."""
    if logs_children(session):
        return NO_KEYS
    session.rows("SET sql_quote_show_create = 1")
    asked = ((table, tuple(_declared(session, table))) for table in sorted(tables))
    found = {table: keys for table, keys in asked if keys}
    children = {one.key.child for keys in found.values() for one in keys}
    return DeclaredKeys(found, frozenset(table for table in children if _computes(session, table)))


def cascading(session: Session, tables: Mapping[TableId, Columns]) -> list[Cascading]:
    """All keys of these tables that change rows; none where the server logs what they do. Raises SourceError.

    `tables`: as `schema.foreign_keys.refusal` has it.
    """
    return declared_keys(session, tables).among(tables)


def with_keys(standing: Manifest, declared: Mapping[str, DeclaredKeys]) -> Manifest:
    """A manifest with the keys that each shard declares. Raises Unsupported for a table that cannot be carried."""
    columns = columns_of(standing.shapes)

    def of(shard: str, state: ShardState) -> ShardState:
        here = {copy.table: columns[copy.table] for copy in state.copies}
        return replace(state, keys=declared[shard].carried(shard, here))

    shards = {shard: of(shard, state) for shard, state in standing.cut.shards.items()}
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
