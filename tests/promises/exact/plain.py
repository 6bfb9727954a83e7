"""Every version of the plain tables, as readers have it that know nothing of Catchment.

DuckDB's delta extension and delta-rs's own engine read each version, and Spark where there is one. Which epoch it is,
the Delta log says. The changes that delta-rs tells of a version have to lead to it from the one before.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from catchment.model.epoch import TableShape
from catchment.sink.reading import double_quoted
from tests.world.delta_scan import DeltaScan
from tests.world.delta_spark import DeltaSpark

ORIGIN = ("_shard", "_epoch")


class PlainVersions:
    """The versions of a table, by the epoch that each says it is. `compared`: how many were; `told`: of how many the
    changes were."""

    def __init__(
        self, directory: Path, application: str, scan: DeltaScan, spark: DeltaSpark | None = None
    ) -> None:
        self._directory = directory
        self._scan, self._spark = scan, spark
        self.left = _versions(directory, application)
        self.compared = self.told = 0
        self._before: tuple[int, pa.Table] | None = None

    def differing(self, epoch: int, shape: TableShape, records: pa.Table) -> Iterator[str]:
        """What the versions of an epoch have that its records, under the source's names, do not."""
        live = [column for column in shape.columns if column.live]
        physical = [*ORIGIN, *(column.physical for column in live)]
        expected = _rows(records.select([*ORIGIN, *(column.column.name for column in live)]))
        for version in self.left.pop(epoch, ()):
            self.compared += 1
            for reader, found in self._by_all(physical, version):
                rows = _rows(found.rename_columns(records.column_names).cast(records.schema))
                if rows != expected:
                    more, less = rows - expected, expected - rows
                    yield f"plain version {version} by {reader}: has {sorted(more)[:3]}, lacks {sorted(less)[:3]}"
            yield from self._untold(version, found)
            self._before = version, found

    def _by_all(self, columns: list[str], version: int) -> Iterator[tuple[str, pa.Table]]:
        """What each reader has; delta-rs comes last."""
        yield "DuckDB", self._scan.rows(self._directory, columns, version)
        if self._spark is not None:
            names = ", ".join(f"`{name}`" for name in columns)
            query = f"SELECT {names} FROM delta.`{self._directory}` VERSION AS OF {version}"
            yield "Spark", self._spark.sql(query)
        yield "delta-rs", self._delta_rs(columns, version)

    def _untold(self, version: int, found: pa.Table) -> Iterator[str]:
        """What the changes of a version make of the one before, and the version is not."""
        if self._before is None or self._before[0] != version - 1:
            return
        table = DeltaTable(self._directory, version=version)
        changes = pa.table(table.load_cdf(starting_version=version, ending_version=version).read_all())
        rows = _rows(_conformed(self._before[1], found.schema))
        for change, row in zip(
            changes["_change_type"].to_pylist(),
            map(repr, _conformed(changes, found.schema).to_pylist()),
            strict=True,
        ):
            rows[row] += -1 if change in ("delete", "update_preimage") else 1
        self.told += 1
        wrong = rows.copy()
        wrong.subtract(_rows(found))
        wrong = Counter({row: count for row, count in wrong.items() if count})
        if wrong:
            yield f"plain version {version}: its changes say otherwise of {wrong.most_common(3)}"

    def _delta_rs(self, columns: list[str], version: int) -> pa.Table:
        names = ", ".join(map(double_quoted, columns))
        engine = QueryBuilder().register("plain", DeltaTable(self._directory, version=version))
        return pa.table(engine.execute(f"SELECT {names} FROM plain").read_all())


def _conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with other columns: those that they lack are null."""
    return pa.table(
        [
            rows[field.name].cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _rows(table: pa.Table) -> Counter[str]:
    """Rows as texts, and how often each is there."""
    return Counter(map(repr, table.to_pylist()))


def _versions(directory: Path, application: str) -> dict[int, list[int]]:
    """The versions of a Delta log by the epoch that each carries, which a commit may leave as it is."""
    found: dict[int, list[int]] = {}
    epoch = 0
    for entry in sorted((directory / "_delta_log").glob("*.json")):
        for line in map(json.loads, entry.read_text().splitlines()):
            if line.get("txn", {}).get("appId") == application:
                epoch = line["txn"]["version"]
        found.setdefault(epoch, []).append(int(entry.stem))
    return found
