"""A table that stands as of an earlier epoch: what its readers see, who is told, and what becomes of its old copy."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

import catchment
from catchment.cli.main import execute
from catchment.model.epoch import Manifest
from catchment.model.errors import SinkError, Unsupported
from catchment.model.location import location
from catchment.model.table import TableId
from catchment.model.table_state import TableState
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.sink.delta.upkeep import clean
from catchment.state.faults import Fault
from catchment.state.store import Store
from catchment.watch.status import read_status
from catchment.watch.table_status import TableStatus
from tests.conftest import Shards
from tests.layers.watch.test_notify import to_file
from tests.promises.exact.steps import EMPTIES, Rows, Steps, run_here
from tests.world.delta_scan import DeltaScan
from tests.world.settled import settled

PROOF = ("INSERT INTO other VALUES (NULL)", "INSERT INTO other VALUES (NULL)")
FIRST = {(1, 10), (2, 20), (3, 30)}


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of two tables on two shards that has caught up and is settled."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        "INSERT INTO other VALUES (1)",
    )
    begun.run()
    settled(begun.feed)
    return begun


def newest(steps: Steps) -> Manifest:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def rows_of(steps: Steps, *columns: str, epoch: int | None = None) -> set[tuple[Any, ...]]:
    """Rows of the table, of both shards, as `catchment.read` has them."""
    found = catchment.read(steps.file, f"{steps.schema}.t", epoch).arrow().to_pylist()
    return {tuple(row[c] for c in columns) for row in found}


def plain(steps: Steps, *columns: str) -> list[Rows]:
    """The same as DuckDB's delta_scan and delta-rs have it."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, "t"))
    engine = QueryBuilder().register("plain", DeltaTable(place))
    with DeltaScan() as scan:
        found = [
            scan.rows(place, columns).to_pylist(),
            pa.table(engine.execute(f"SELECT {', '.join(columns)} FROM plain").read_all()).to_pylist(),
        ]
    return [sorted({tuple(row[c] for c in columns) for row in rows}) for rows in found]


def status_of(steps: Steps, name: str = "t") -> TableStatus:
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        return next(one for one in read_status(store).tables if one.table == f"{steps.schema}.{name}")


def drop_it(steps: Steps) -> int:
    """Drop the table everywhere while the feed leaves such a table stale; the last epoch that has it."""
    last = newest(steps).epoch
    steps.set(schema_change="freeze")
    steps.everywhere("UPDATE t SET n = 0", "DROP TABLE t", *PROOF)
    steps.run()
    steps.set(schema_change="evolve")
    return last


def test_readers_see_the_last_exact_epoch_and_are_told(steps: Steps) -> None:
    exact = drop_it(steps)
    (stale,) = newest(steps).stale
    assert stale.epoch == exact
    state = catchment.read(steps.file, f"{steps.schema}.t")
    assert (state.epoch, state.as_of) == (newest(steps).epoch, exact)
    assert rows_of(steps, "id", "n") == FIRST
    with pytest.raises(SinkError, match="it was dropped"):
        catchment.read(steps.file, f"{steps.schema}.t", strict=True)
    other = catchment.read(steps.file, f"{steps.schema}.other", strict=True)
    assert other.as_of == other.epoch
    assert status_of(steps).state is TableState.STALE
    assert "it was dropped" in status_of(steps).reason
    assert status_of(steps, "other").state is TableState.FOLLOWING


def test_whoever_is_to_be_told_is_told(steps: Steps, tmp_path: Path) -> None:
    steps.set(
        notify={"command": list(to_file(tmp_path / "told"))}, metrics={"file": str(tmp_path / "metrics")}
    )
    drop_it(steps)
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    (stale,) = [one for one in told if one["event"] == "stale"]
    assert "it was dropped" in stale["message"]
    assert 'catchment_tables_stale{feed="exact"} 1.0' in (tmp_path / "metrics").read_text()


def test_plain_tables_stand_still_and_then_change_at_once(steps: Steps) -> None:
    drop_it(steps)
    settled(steps.feed)
    assert plain(steps, "id", "n") == [sorted(FIRST)] * 2
    steps.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(9))",
        "INSERT INTO t VALUES (7, 'new')",
        *PROOF,
    )
    steps.renew(*PROOF)
    assert rows_of(steps, "id", "w") == {(7, "new")}
    assert plain(steps, "id", "n") == [sorted(FIRST)] * 2
    settled(steps.feed)
    assert plain(steps, "id", "w") == [[(7, "new")]] * 2
    assert rows_of(steps, "id", "w") == {(7, "new")}
    steps.everywhere("UPDATE t SET w = 'newer'")
    steps.run()
    settled(steps.feed)
    assert plain(steps, "id", "w") == [[(7, "newer")]] * 2


def test_every_epoch_before_and_after_can_be_read(steps: Steps) -> None:
    seen = {newest(steps).epoch: FIRST}
    for number, statements in enumerate(
        (
            ["UPDATE t SET n = n + 1"],
            [*EMPTIES, "INSERT INTO t VALUES (4, 40)"],
            ["INSERT INTO t VALUES (5, 50)"],
            ["ALTER TABLE t MODIFY n BIGINT"],
            ["DELETE FROM t WHERE id = 4"],
        )
    ):
        steps.everywhere(*statements, *PROOF)
        steps.renew(*PROOF)
        seen[newest(steps).epoch] = rows_of(steps, "id", "n")
        if number % 2:
            settled(steps.feed)
    for epoch, rows in seen.items():
        assert rows_of(steps, "id", "n", epoch=epoch) == rows
    assert rows == {(5, 50)}
    assert [row.readable for row in catchment.epochs(steps.file)] == [True] * len(
        catchment.epochs(steps.file)
    )


def test_a_statement_that_names_several_tables_stops_each(steps: Steps) -> None:
    steps.everywhere("CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (1)", *PROOF)
    steps.run()
    steps.everywhere("RENAME TABLE t TO x, u TO t, x TO u", *PROOF)
    steps.renew(*PROOF)
    assert steps.lake("t", "id") == steps.source("t", "id")
    assert steps.lake("u", "id", "n") == steps.source("u", "id", "n")
    steps.everywhere("DROP TABLE t, u", *PROOF)
    steps.run()
    assert {one.table.name for one in newest(steps).outside if one.dropped} == {"t", "u"}


def test_without_any_table_left_the_feed_goes_on(steps: Steps) -> None:
    steps.everywhere("DROP TABLE t, other")
    steps.run()
    assert not newest(steps).shapes
    steps.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (8)",
        "CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)",
        *PROOF,
        *PROOF,
    )
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id")


def test_one_shard_before_the_other(steps: Steps) -> None:
    steps.sql("-80", "ALTER TABLE t MODIFY n BIGINT DEFAULT (1 + 1)", *PROOF)
    steps.run()
    assert status_of(steps).state is TableState.STALE
    assert rows_of(steps, "id", "n") == FIRST
    steps.sql("80-", "ALTER TABLE t MODIFY n BIGINT DEFAULT (1 + 1)", "UPDATE t SET n = 1", *PROOF)
    steps.sql("-80", *PROOF)
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n")
    steps.sql("80-", *EMPTIES, *PROOF)
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n")


def test_ddl_upon_ddl_begins_anew_each_time(steps: Steps) -> None:
    steps.everywhere(
        *EMPTIES,
        "INSERT INTO t VALUES (1, 1)",
        *EMPTIES,
        "INSERT INTO t VALUES (2, 2)",
        *PROOF,
    )
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n")
    first = newest(steps).shape(TableId(steps.schema, "t")).generation
    steps.everywhere("ALTER TABLE t CHANGE n m SMALLINT", *PROOF)
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "m")
    assert newest(steps).shape(TableId(steps.schema, "t")).generation > first > 0


FAULTS = [
    Fault.AFTER_MANIFEST,
    Fault.BETWEEN_APPLIES,
    *(
        pytest.param(fault, marks=pytest.mark.wide)
        for fault in (Fault.AFTER_PLAN, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW)
    ),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_that_dies_anywhere_is_gone_on_with(steps: Steps, fault: Fault) -> None:
    """It dies at each time in turn at which it comes to the place, until it comes through."""

    steps.everywhere("UPDATE t SET n = 5 WHERE id = 3", *EMPTIES, "INSERT INTO t VALUES (6, 60)", *PROOF)
    steps.die_again_and_again(fault, 8)
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n")
    assert steps.lake("other", "id") == steps.source("other", "id")
    settled(steps.feed)
    assert plain(steps, "id", "n") == [[(6, 60)]] * 2


def test_a_frozen_table_stays_as_it_was(steps: Steps) -> None:
    steps.set(schema_change="freeze")
    steps.everywhere("ALTER TABLE t ADD COLUMN m INT", "UPDATE t SET n = 0", *PROOF)
    steps.run()
    assert rows_of(steps, "id", "n") == FIRST
    assert "schema_change is freeze" in status_of(steps).reason
    assert steps.lake("other", "id") == steps.source("other", "id")
    steps.set(schema_change="evolve")
    steps.everywhere(*PROOF)
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n", "m")


def test_with_fail_the_run_ends(steps: Steps) -> None:
    steps.set(schema_change="fail")
    steps.everywhere(*EMPTIES, *PROOF)
    with pytest.raises(Unsupported, match="not one that is known"):
        steps.run()
    assert rows_of(steps, "id", "n") == FIRST
    steps.set(schema_change="evolve")
    steps.renew(*PROOF)
    steps.must_be_equal("t", "id", "n")


def test_the_old_copy_goes_when_nobody_can_read_it_any_more(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, root = TableId(steps.schema, "t"), location(str(steps.feed.sink.path))
    old = Path(str(tail_dir(root, table)))
    steps.everywhere(*EMPTIES, "INSERT INTO t VALUES (6, 60)", *PROOF)
    steps.renew(*PROOF)
    settled(steps.feed)
    assert list(old.glob("_part=*/*.parquet"))
    monkeypatch.setattr(clean, "window_hours", lambda keep_s: 0)
    steps.everywhere("INSERT INTO t VALUES (7, 70)")
    steps.run()
    settled(steps.feed)
    assert not list(old.glob("_part=*/*.parquet"))
    assert rows_of(steps, "id", "n") == {(6, 60), (7, 70)}
    steps.run()


def test_an_erasure_reaches_the_old_copy(steps: Steps) -> None:
    steps.everywhere(*EMPTIES, *PROOF)
    steps.renew(*PROOF)
    settled(steps.feed)
    assert execute(["erase", str(steps.file), "--table", f"{steps.schema}.t", "--keys", "2"]) == 0
    for file in Path(str(steps.feed.sink.path)).rglob("*.parquet"):
        if "_delta_log" not in file.parts and f"/{steps.schema}/t/" in str(file):
            found = keys_in(file)
            assert 2 not in found, file


def keys_in(file: Path) -> list[Any]:
    """The keys of a data file."""
    rows = pq.ParquetFile(file).read()
    return list(rows["id"].to_pylist()) if "id" in rows.column_names else []


def test_verify_leaves_it_out_and_says_so(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    drop_it(steps)
    assert execute(["verify", str(steps.file)]) == 0
    assert "not compared" in capsys.readouterr().out


def test_a_stale_table_may_leave_the_feed(steps: Steps) -> None:
    drop_it(steps)
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.t"])
    steps.run("t")
    assert not newest(steps).stale
    assert [one.table.name for one in newest(steps).outside] == ["t"]
    steps.everywhere(*PROOF)
    steps.must_be_equal("other", "id")
