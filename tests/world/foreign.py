"""Another program's OPTIMIZE of a plain table, written by hand: files as no writer of ours makes them, one commit.

It knows nothing of Catchment. delta-rs tells the rows; the log is read and written as the Delta protocol says.
"""

import json
import random
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

Action = dict[str, Any]


@dataclass(frozen=True)
class Manner:
    """How files are written. `counts`: the log tells their rows; `old_times`: times as Spark wrote them for long
    (INT96); `wide_types`: texts as other libraries have them in memory, which a file may note."""

    counts: bool = True
    old_times: bool = False
    wide_types: bool = False

    @staticmethod
    def any(rng: random.Random) -> "Manner":
        """One at random."""
        return Manner(rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.5)


def optimize(directory: Path, rng: random.Random, manner: Manner) -> int:
    """Write all rows to one or two files, in any order of rows and columns; the version that this makes."""
    table = DeltaTable(directory)
    version: int = table.version() + 1
    rows = pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())
    rows = rows.cast(pa.schema(table.schema().to_arrow()))
    order = rng.sample(range(rows.num_rows), rows.num_rows)
    columns = rng.sample(rows.column_names, rows.num_columns)
    rows = rows.select(columns).take(pa.array(order, pa.int64()))
    middle = rng.randrange(rows.num_rows + 1)
    parts = [part for part in (rows.slice(0, middle), rows.slice(middle)) if part.num_rows]
    adds = [_written(directory, part, manner) for part in parts]
    removes = [_removed(add) for add in _files(directory).values()]
    info = {"operation": "OPTIMIZE", "engineInfo": "by hand", "timestamp": 1_700_000_000_000}
    lines = [{"commitInfo": info}, *({"add": add} for add in adds), *({"remove": gone} for gone in removes)]
    entry = directory / "_delta_log" / f"{version:020d}.json"
    with entry.open("x") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return version


def _written(directory: Path, rows: pa.Table, manner: Manner) -> Action:
    path = f"part 0/{uuid.uuid4()}.snappy.parquet"
    target = directory / path
    target.parent.mkdir(exist_ok=True)
    pq.write_table(
        rows.cast(pa.schema([_widened(field) for field in rows.schema])) if manner.wide_types else rows,
        target,
        row_group_size=17,
        compression="snappy",
        use_deprecated_int96_timestamps=manner.old_times,
        store_schema=manner.wide_types,
    )
    add = {
        "path": quote(path),
        "partitionValues": {},
        "size": target.stat().st_size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": False,
    }
    return add | ({"stats": json.dumps({"numRecords": rows.num_rows})} if manner.counts else {})


def _widened(field: pa.Field) -> pa.Field:
    kinds = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
    return field.with_type(kinds.get(field.type, field.type))


def _removed(add: Mapping[str, Any]) -> Action:
    kept = {
        name: add[name] for name in ("path", "size", "partitionValues", "deletionVector") if add.get(name)
    }
    return kept | {
        "dataChange": False,
        "deletionTimestamp": 1_700_000_000_000,
        "extendedFileMetadata": True,
    }


def _files(directory: Path) -> dict[str, Action]:
    found: dict[str, Action] = {}
    for line in _lines(directory):
        if "remove" in line:
            found.pop(line["remove"]["path"], None)
        if "add" in line:
            found[line["add"]["path"]] = line["add"]
    return found


def _lines(directory: Path) -> Iterator[Action]:
    """The lines of a whole log; of one commit, what is added comes last."""
    for entry in sorted((directory / "_delta_log").glob("*.json")):
        yield from sorted(map(json.loads, entry.read_text().splitlines()), key=lambda line: "add" in line)
