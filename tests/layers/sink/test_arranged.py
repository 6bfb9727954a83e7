"""Plain tables whose files are kept apart, in order, and of some size: exact at every version, and read in part."""

import datetime as dt
import random
import re
from itertools import pairwise
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from msgspec.structs import replace

from catchment.model.arrangement import Arrangement, Partition, Span
from catchment.model.epoch import LakeColumn, Part, TableShape
from catchment.model.table import Column, ColumnType, Kind
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile, Snapshot
from catchment.sink.delta.plain.due import FileSize, due
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED, INT, TEXT, delta, shape, write
from tests.layers.sink.test_change_data import carried_out, told
from tests.layers.sink.test_modes import Kept, Row
from tests.world.delta_scan import DeltaScan
from tests.world.settled import carry_out

TABLE = shape(
    "orders",
    {"id": INT, "sig": TEXT, "customer": ColumnType(Kind.INT), "created": ColumnType(Kind.DATETIME, scale=6)},
    ("id",),
)
MONTHS = Partition("created", Span.MONTH)
ARRANGEMENTS = {
    "shards": Arrangement(partition=Partition()),
    "months": Arrangement(partition=MONTHS),
    "order": Arrangement(cluster_by=("Customer", "created")),
    "all": Arrangement(("customer",), Partition("created", Span.DAY), 1 << 20),
}


def created(value: str | None) -> dt.datetime | None:
    """When a row with a value was created; some have no time."""
    number = sum(map(ord, value or ""))
    return (
        None if value is None or number % 5 == 0 else dt.datetime(2025, 12, 30) + dt.timedelta(hours=number)
    )


class Arranged(Kept):
    """A table that is copied while it changes."""

    def __init__(
        self,
        root: Path,
        mode: Mode,
        rng: random.Random,
        form: Form = Form(),  # noqa: B008 (an immutable value)
        shape: TableShape = TABLE,
    ) -> None:
        super().__init__(root, mode, rng, form, shape)

    def row(self, key: int, value: str | None) -> Row:
        customer = None if value is None else (key * 7919) % 13
        return (key, value, customer, created(value))

    def newest(self) -> Snapshot:
        newest = DeltaLog(self.plain).newest()
        assert newest is not None
        return newest

    def must_be_arranged(self) -> None:
        """Each file has rows of one partition, as the log says, in order; and every reader sees the partition."""
        arrangement, newest = self.shape.arrangement, self.newest()
        for file in newest.files.values():
            rows = pq.read_table(self.plain / file.path, partitioning=None)
            found = {tuple(partition_of(row, arrangement).items()) for row in rows.to_pylist()}
            assert found == {tuple(file.add.partition_values.items())}
            keys = [tuple(map(last_if_null, order)) for order in self._order_of(rows)]
            assert all(before <= after for before, after in pairwise(keys))
        names = [*newest.metadata.partition_columns, "created"]
        engine = QueryBuilder().register("t", DeltaTable(self.plain))
        by_delta_rs = pa.table(engine.execute(f"SELECT {', '.join(names)} FROM t").read_all())
        with DeltaScan() as judge:
            by_duckdb = judge.rows(self.plain, names)
        by_polars = pl.read_delta(str(self.plain)).select(names).to_arrow()
        for rows in (by_delta_rs, by_duckdb, by_polars):
            for row in rows.to_pylist():
                if arrangement.partition is not None and not arrangement.partition.by_shard:
                    assert {names[0]: text(row[names[0]])} == partition_of(row, arrangement)

    def _order_of(self, rows: pa.Table) -> list[tuple[object, ...]]:
        names = [name.lower() for name in self.shape.arrangement.cluster_by]
        return [tuple(row[name] for name in names) for row in rows.to_pylist()]


def text(day: dt.date | None) -> str | None:
    return None if day is None else day.isoformat()


def last_if_null(value: object) -> tuple[bool, object]:
    return (value is None, value)


def partition_of(row: dict[str, object], arrangement: Arrangement) -> dict[str, object]:
    """The partition of a row, worked out from its values."""
    partition, when = arrangement.partition, row["created"]
    if partition is None:
        return {}
    if partition.by_shard:
        return {"_shard": row["_shard"]}
    assert partition.span is not None
    day = when.date() if isinstance(when, dt.datetime) else None
    if day is not None and partition.span is Span.MONTH:
        day = day.replace(day=1)
    return {f"_created_{partition.span.value}": text(day)}


WIDE = pytest.mark.wide


@pytest.mark.parametrize("name", ARRANGEMENTS)
@pytest.mark.parametrize(
    "mode", [Mode.MIRROR, *(pytest.param(mode, marks=WIDE) for mode in (Mode.SOFT_DELETE, Mode.HISTORY))]
)
def test_every_version_is_exact_and_every_file_arranged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode, name: str
) -> None:
    monkeypatch.setattr("catchment.sink.delta.plain.due.FAN", 3)
    table = Arranged(
        tmp_path, mode, random.Random(name), shape=replace(TABLE, arrangement=ARRANGEMENTS[name])
    )
    for _ in range(6 if mode is Mode.MIRROR else 9):
        for _ in range(table.rng.choice((1, 2, 3))):
            table.commit()
        table.settle()
    table.commit()  # waits in the tail
    table.must_be_exact()
    table.must_be_arranged()
    assert "OPTIMIZE" in {entry["operation"] for entry in DeltaTable(table.plain).history()}, (
        "files were joined"
    )


@pytest.mark.parametrize(
    ("mode", "form"),
    [
        pytest.param(Mode.HISTORY, Form(vectors=False), marks=WIDE),
        (Mode.MIRROR, Form(changes=True)),
        *(pytest.param(Mode.APPEND, form, marks=WIDE) for form in (Form(vectors=False), Form(changes=True))),
    ],
    ids=str,
)
def test_other_forms(tmp_path: Path, mode: Mode, form: Form) -> None:
    table = Arranged(tmp_path, mode, random.Random(5), form, replace(TABLE, arrangement=ARRANGEMENTS["all"]))
    for _ in range(5):
        table.commit()
        table.commit()
        table.settle()
    table.must_be_exact()
    table.must_be_arranged()
    if form.changes:
        rows: list[Row] = []
        for version in range(DeltaTable(table.plain).version() + 1):
            changes = told(table.plain, version)
            assert all(change["_created_day"] == day_of(change["created"]) for change in changes)
            rows = carried_out(rows, [{k: c[k] for k in ("_change_type", *table.names)} for c in changes])
            exact = pl.read_delta(str(table.plain), version=version).select(table.names).rows()
            assert rows == sorted(exact, key=repr)


def day_of(when: dt.datetime | None) -> dt.date | None:
    return None if when is None else when.date()


def scanned(judge: DeltaScan, plain: Path, condition: str) -> tuple[int, int]:
    """How many files DuckDB reads for a query, and of how many."""
    query = f"EXPLAIN ANALYZE SELECT id FROM delta_scan('{plain}') WHERE {condition}"
    (plan,) = judge.query("", query)["explain_value"].to_pylist()
    found = re.search(r"Scanning Files: (\d+)/(\d+)", plan)
    assert found is not None, plan
    return int(found[1]), int(found[2])


def test_readers_pass_over_partitions(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    table = replace(TABLE, arrangement=Arrangement(partition=MONTHS))
    moments = [dt.datetime(2026, 1 + n % 12, 1 + n % 28) for n in range(500)]
    feeder.put(table, *((n, "a", n, moment) for n, moment in enumerate(moments)))
    carry_out(UpkeepOrder(str(tmp_path), FEED, 1, 3600.0))
    with DeltaScan() as judge:
        assert scanned(judge, table_dir(tmp_path, TABLE.table), "_created_month = DATE '2026-03-01'") == (
            1,
            12,
        )
        assert scanned(judge, table_dir(tmp_path, TABLE.table), "_created_month >= DATE '2026-11-01'") == (
            2,
            12,
        )


def test_the_first_and_last_days_and_a_column_that_goes(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path)
    days = shape("days", {"id": INT, "d": ColumnType(Kind.DATE), "t": ColumnType(Kind.TIMESTAMP)}, ("id",))
    days = replace(days, arrangement=Arrangement(partition=Partition("d", Span.YEAR)))
    first, last, before = dt.date(1000, 5, 5), dt.date(9999, 12, 31), dt.date(1969, 12, 31)
    feeder.put(days, (1, first, None), (2, last, None), (3, before, None), (4, None, None))
    settle = UpkeepOrder(str(tmp_path), FEED, 1, 3600.0)
    carry_out(settle)
    gone = replace(days.columns[1], live=False)
    feeder.put(replace(days, columns=(days.columns[0], gone, days.columns[2])), (5, None, None))
    carry_out(settle)
    again = LakeColumn(Column("d", ColumnType(Kind.DATE)), "d__9")
    columns = (days.columns[0], gone, days.columns[2], again)
    feeder.put(replace(days, columns=columns), (6, None, None, dt.date(1969, 1, 1)))
    carry_out(settle)
    plain = pl.read_delta(str(table_dir(tmp_path, days.table)))
    assert plain.select("id", "_d_year").sort("id").rows() == [
        (1, dt.date(1000, 1, 1)),
        (2, dt.date(9999, 1, 1)),
        (3, dt.date(1969, 1, 1)),
        (4, None),
        (5, None),
        (6, dt.date(1969, 1, 1)),
    ]


def test_order_and_size_may_change(tmp_path: Path) -> None:
    """Files of before stay as they are until they are joined."""
    table = Arranged(tmp_path, Mode.MIRROR, random.Random(3))
    for arrangement in (
        Arrangement(),
        Arrangement(("customer",)),
        Arrangement(("sig", "id"), file_bytes=1 << 20),
    ):
        table.shape = replace(table.shape, arrangement=arrangement)
        for _ in range(3):
            table.commit()
            table.settle()
    table.must_be_exact()


def test_files_are_joined_up_to_a_size(tmp_path: Path) -> None:
    """Noise does not compress: five files of 0.3 MB make one of more than a MB, which is joined no more."""
    feeder, rng = Feeder(tmp_path), random.Random(1)
    table = replace(TABLE, arrangement=Arrangement(file_bytes=1 << 20))
    for number in range(10):
        feeder.epoch += 1
        rows = [
            ("s/0", feeder.epoch, False, (number * 1000 + n, rng.randbytes(225).hex(), n, None))
            for n in range(1000)
        ]
        feeder.commit((table,), delta(table, write(tmp_path, table, Part.BASE, f"{number}", rows)))
        carry_out(UpkeepOrder(str(tmp_path), FEED, 1, 3600.0))
    newest = DeltaLog(table_dir(tmp_path, table.table)).newest()
    assert newest is not None
    sizes = sorted(file.add.size for file in newest.files.values())
    assert sizes[-1] >= 1 << 20
    assert len(sizes) < 6
    assert sum(file.rows for file in newest.files.values()) == 10_000
    assert not due(newest, FileSize(1 << 20))


def test_partitions_are_joined_apart(tmp_path: Path) -> None:
    table = Arranged(
        tmp_path, Mode.MIRROR, random.Random(8), shape=replace(TABLE, arrangement=ARRANGEMENTS["shards"])
    )
    for _ in range(3):
        table.commit()
        table.settle()
    (one, *_) = table.newest().files.values()
    files = [
        replace(one.add, path=f"{shard}-{n}", partition_values={"_shard": shard})
        for shard in "ab"
        for n in range(16)
    ]
    snapshot = replace(table.newest(), files={add.path: LakeFile(add, one.rows) for add in files})
    joined = due(snapshot)
    assert [len(group) for group in joined] == [16, 16]
    assert all(len({file.add.partition_values["_shard"] for file in group}) == 1 for group in joined)
