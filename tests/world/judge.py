"""Judge two: what the sources hold now, by SELECT alone. Reads no log; the writers must be at rest."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import pymysql

from catchment.demo.server import PrivateServer
from tests.world.canonical import Key, Row, canonical_row, key_of

Rows: TypeAlias = dict[tuple[str, Key], Row]


def source_rows(shards: Mapping[str, PrivateServer], table: str, key: tuple[str, ...]) -> Rows:
    """All rows of `table` (`schema.table`) of all shards, by (shard name, key)."""
    rows: Rows = {}
    for shard, server in shards.items():
        connection = server.connect(init_command="SET time_zone = '+00:00'")
        with connection, connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            for record in cursor.fetchall():
                row = canonical_row(record)
                rows[shard, key_of(row, key)] = row
    return rows


def oracle_rows(states: Mapping[str, Mapping[Key, Row]]) -> Rows:
    """One table's oracle states of all shards, given by shard name, in the form of `source_rows`."""
    return {(shard, key): row for shard, state in states.items() for key, row in state.items()}


def lake_rows(records: Iterable[Mapping[str, Any]], key: tuple[str, ...], shard: str = "_shard") -> Rows:
    """Rows as a reader of the lake gets them (dicts), in the form of `source_rows`.

    `shard` names the column of the shard. Columns that begin with `_` are left out. Raises AssertionError
    when two rows have the same shard and key.
    """
    rows: Rows = {}
    for record in records:
        row = canonical_row(record)
        place = (str(record[shard]), key_of(row, key))
        assert place not in rows, f"two rows of {place[0]} have the key {place[1]}"
        rows[place] = row
    return rows


def compare(lake: Rows, source: Rows) -> list[str]:
    """One line per (shard, key) that differs, sorted; empty when equal."""
    lines = []
    for place in lake.keys() | source.keys():
        have, want = lake.get(place), source.get(place)
        where = f"{place[0]} {place[1]!r}"
        if have is None:
            lines.append(f"{where}: missing in the lake, source has {want}")
        elif want is None:
            lines.append(f"{where}: not in the source, lake has {have}")
        elif have != want:
            columns = sorted(have.keys() | want.keys())
            differing = [
                f"{column}: lake {have.get(column, 'no such column')!r},"
                f" source {want.get(column, 'no such column')!r}"
                for column in columns
                if (column in have) != (column in want) or have.get(column) != want.get(column)
            ]
            lines.append(f"{where}: {'; '.join(differing)}")
    return sorted(lines)
