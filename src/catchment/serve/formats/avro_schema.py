"""The schema of a file: Debezium's envelope, whose rows are a union of the records of all tables.

A table whose columns differ, in time or between shards, has one record for each version of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from catchment.model.table import Table, TableId
from catchment.serve.formats.avro_names import avro_name
from catchment.serve.formats.avro_types import NAMESPACE, AvroType, avro_type

Schema = dict[str, Any]

_NULL: Final = "null"
# Those of Debezium's connector, with its types.
_SOURCE: Final = {
    "version": "string",
    "connector": "string",
    "name": "string",
    "ts_ms": "long",
    "snapshot": "string",
    "db": "string",
    "sequence": [_NULL, "string"],
    "table": "string",
    "server_id": "long",
    "gtid": [_NULL, "string"],
    "file": "string",
    "pos": "long",
    "row": "int",
    "thread": [_NULL, "long"],
    "query": [_NULL, "string"],
}
_TRANSACTION: Final = {"id": "string", "total_order": "long", "data_collection_order": "long"}


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: AvroType


@dataclass(frozen=True, slots=True)
class Version:
    """A table with these columns. What Avro shows of them is the same for two that are equal."""

    table: TableId
    columns: tuple[_Column, ...]

    @classmethod
    @lru_cache(maxsize=1024)
    def of(cls, table: Table) -> "Version":
        """Of a table as the catalog has it, or the log."""
        return cls(table.id, tuple(_Column(column.name, avro_type(column.type)) for column in table.columns))


@dataclass(frozen=True, slots=True)
class _Record:
    """`name` is whole; `key` as the table has it."""

    name: str
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """The versions of tables for which a file has a place."""

    _records: Mapping[Version, _Record]

    @classmethod
    def of(cls, tables: Iterable[Table]) -> "Records":
        """Each version once. The first one of a table has its plain name."""
        records: dict[Version, _Record] = {}
        counts: dict[TableId, int] = {}
        for table in tables:
            version = Version.of(table)
            if version not in records:
                counts[table.id] = number = counts.get(table.id, 0) + 1
                records[version] = _Record(_full_name(table.id, number), table.key)
        return cls(records)

    def lacking(self, tables: Iterable[Table]) -> list[TableId]:
        """The tables of which these versions have no place."""
        return sorted({table.id for table in tables if Version.of(table) not in self._records})

    def name_of(self, version: Version) -> str:
        """Of its record."""
        return self._records[version].name

    def schema(self) -> Schema:
        """Of the whole file, as JSON."""
        defined: set[str] = set()
        rows = [_row_schema(version, record, defined) for version, record in self._records.items()]
        fields = [
            _nullable("before", rows),
            _nullable("after", [record.name for record in self._records.values()]),
            {"name": "source", "type": _plain_record("io.debezium.connector.mysql.Source", _SOURCE)},
            {"name": "op", "type": "string"},
            {"name": "ts_ms", "type": "long"},
            _nullable("transaction", [_plain_record(f"{NAMESPACE}.Transaction", _TRANSACTION)]),
            _nullable("vgtid", ["string"]),
        ]
        return {"type": "record", "name": f"{NAMESPACE}.Envelope", "fields": fields}


def _full_name(table: TableId, number: int) -> str:
    """Two parts, or three from the second version on. Spark tells records apart by their last part."""
    schema, name = avro_name(table.schema), avro_name(table.name)
    return f"{schema}.{name}" if number == 1 else f"{schema}.v{number}.{name}_v{number}"


def _row_schema(version: Version, record: _Record, defined: set[str]) -> Schema:
    fields = []
    for column in version.columns:
        name = column.type.name
        known = name in defined
        defined.add(name)
        shown = name if name and known else column.type.schema()
        fields.append({**_nullable(avro_name(column.name), [shown]), "source.column": column.name})
    return {
        "type": "record",
        "name": record.name,
        "source.schema": version.table.schema,
        "source.table": version.table.name,
        "key": [avro_name(column) for column in record.key],
        "fields": fields,
    }


def _nullable(name: str, types: list[Any]) -> Schema:
    return {"name": name, "type": [_NULL, *types], "default": None}


def _plain_record(name: str, types: Mapping[str, Any]) -> Schema:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in types.items()]}
