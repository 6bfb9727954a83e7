"""A table that stands as of an earlier epoch: what its readers see, who is told, and what may be done about it."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import catchment
from catchment.cli.main import execute
from catchment.model.errors import NOT_ALL_COMPARED, SinkError, Unsupported
from catchment.model.table import TableId
from catchment.model.table_state import TableState
from catchment.sink.delta.layout import table_dir
from catchment.state.store import Store
from catchment.watch.status import read_status
from catchment.watch.table_status import TableStatus
from tests.conftest import Shards
from tests.layers.watch.test_notify import to_file
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.manifests import lake, must_be_equal, newest, outside, stale
from tests.promises.exact.steps import EMPTIES, Rows, Steps, caught_up
from tests.world.delta_scan import DeltaScan
from tests.world.settled import settled

PROOF = ("INSERT INTO other VALUES (NULL)", "INSERT INTO other VALUES (NULL)")
MADE = ("CREATE TABLE {t} (id INT PRIMARY KEY, n INT)", "INSERT INTO {t} VALUES (1, 10), (2, 20), (3, 30)")
TABLES = ("t", "frozen")
KEY = ("id", "n")


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed of three tables on two shards that has caught up and is settled."""
    made = [sql.format(t=name) for name in TABLES for sql in MADE]
    made += ["CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", "INSERT INTO other VALUES (1)"]
    servers = {"-80": shards[0], "80-": shards[1]}
    begun = caught_up(monkeypatch, tmp_path, servers, fresh_schema(*shards), *made)
    settled(begun.feed)
    return begun


def plain(steps: Steps, table: str, *columns: str) -> list[Rows]:
    """A plain table's rows, as DuckDB's delta_scan and delta-rs have them."""
    place = table_dir(Path(str(steps.feed.sink.path)), TableId(steps.schema, table))
    wanted = ("_shard", *columns)
    engine = QueryBuilder().register("plain", DeltaTable(place))
    with DeltaScan() as scan:
        found = [
            scan.rows(place, wanted).to_pylist(),
            pa.table(engine.execute(f"SELECT {', '.join(wanted)} FROM plain").read_all()).to_pylist(),
        ]
    return [sorted(tuple(row[c] for c in wanted) for row in rows) for rows in found]


def status_of(steps: Steps, name: str = "t") -> TableStatus:
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        return next(one for one in read_status(store).tables if one.table == f"{steps.schema}.{name}")


@pytest.mark.promise("readers see a stale table as of its last exact epoch, and are told which")
def test_readers_see_the_last_exact_epoch_and_are_told(
    steps: Steps, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exact, rows = newest(steps).epoch, steps.source("t", *KEY)
    told, metrics = tmp_path / "told", tmp_path / "metrics"
    steps.set(notify={"command": list(to_file(told))}, metrics={"file": str(metrics)}, schema_change="freeze")
    steps.everywhere(
        "UPDATE t SET n = 0",
        "DROP TABLE t",
        "ALTER TABLE frozen ADD COLUMN m INT",
        "UPDATE frozen SET n = 0",
        *PROOF,
    )
    steps.run()
    assert {one.table.name: one.epoch for one in newest(steps).stale} == {"t": exact, "frozen": exact}
    state = catchment.read(steps.file, f"{steps.schema}.t")
    assert (state.epoch, state.as_of) == (newest(steps).epoch, exact)
    assert lake(steps, dict.fromkeys(TABLES, KEY)) == dict.fromkeys(TABLES, rows)
    with pytest.raises(SinkError, match="it was dropped"):
        catchment.read(steps.file, f"{steps.schema}.t", strict=True)
    other = catchment.read(steps.file, f"{steps.schema}.other", strict=True)
    assert other.as_of == other.epoch
    must_be_equal(steps, {"other": ("id",)})
    assert [status_of(steps, name).state for name in TABLES] == [TableState.STALE] * 2
    assert "it was dropped" in status_of(steps).reason
    assert "schema_change is freeze" in status_of(steps, "frozen").reason
    assert status_of(steps, "other").state is TableState.FOLLOWING
    notices = [json.loads(line) for line in told.read_text().splitlines()]
    said = sorted(one["message"].split(" ")[0] for one in notices if one["event"] == "stale")
    assert said == [f"{steps.schema}.frozen", f"{steps.schema}.t"]
    assert samples(metrics)["catchment_tables_stale"] == 2
    assert execute(["verify", str(steps.file)]) == NOT_ALL_COMPARED
    assert capsys.readouterr().out.count("not compared") == 2

    settled(steps.feed)
    assert plain(steps, "t", *KEY) == plain(steps, "frozen", *KEY) == [rows] * 2
    steps.set(schema_change="evolve")
    steps.everywhere(
        "CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(9))", "INSERT INTO t VALUES (7, 'new')", *PROOF
    )
    steps.renew(*PROOF)
    ends = {"t": ("id", "w"), "frozen": ("id", "n", "m"), "other": ("id",)}
    must_be_equal(steps, ends)
    assert plain(steps, "t", *KEY) == plain(steps, "frozen", *KEY) == [rows] * 2
    for statement in ("DO 0", "UPDATE t SET w = 'newer'"):
        steps.everywhere(statement)
        steps.run()
        settled(steps.feed)
        must_be_equal(steps, ends)
        assert plain(steps, "t", "id", "w") == [steps.source("t", "id", "w")] * 2


def test_with_fail_the_run_ends_and_a_stale_table_may_leave(steps: Steps) -> None:
    rows = steps.source("t", *KEY)
    steps.set(schema_change="fail")
    steps.everywhere(*EMPTIES, *PROOF)
    with pytest.raises(Unsupported, match="that Catchment does not follow"):
        steps.run()
    assert lake(steps, {"t": KEY}) == {"t": rows}
    steps.set(schema_change="freeze")
    steps.run()
    assert stale(newest(steps)) == {"t"}
    steps.set(tables=[f"{steps.schema}.*", f"!{steps.schema}.t"])
    steps.run("t")
    assert not newest(steps).stale
    assert outside(newest(steps)) == {"t"}
    steps.everywhere(*PROOF)
    steps.run()
    must_be_equal(steps, {"frozen": KEY, "other": ("id",)})
