"""How far a copy is: near the truth while it goes steadily, told to others, and quiet where nothing moves."""

import json
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from catchment.feed.runner import run_feed
from catchment.model.epoch import Manifest
from catchment.model.progress import THROUGH, Basis, Progress
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.journal import Journal
from catchment.state.store import Store
from catchment.watch.course import Course
from catchment.watch.report import Observer
from catchment.watch.status import read_status
from catchment.watch.table_status import NOBODY_RUNS
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.worlds import SetClocks, put

ROWS = 6_000


@pytest.fixture
def steps(
    shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed whose copy takes many even epochs. Every third key is there, and the catalog knows nothing of it."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, {"-80": shards[0], "80-": shards[1]}, fresh_schema(*shards))
    begun.set(copy={"chunk_rows_max": 40, "group_time": "0s", "groups_per_shard": 1})
    values = ", ".join(f"({3 * key}, {key})" for key in range(1, ROWS + 1))
    begun.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", f"INSERT INTO t VALUES {values}")
    return begun


@pytest.mark.promise("the time left for a steady copy is forecast well after a quarter of its rows")
def test_what_is_said_at_a_quarter_is_near_the_truth(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """The epochs of a real copy, of which each takes a second by the clock that the forecast has."""
    epochs: list[Manifest] = []
    run_feed(
        steps.feed,
        until_caught_up=True,
        stop=threading.Event(),
        observer=Observer(committed=lambda report: epochs.append(report.manifest)),
    )
    rows = [sum(copy.rows for copy in one.cut.copies) for one in epochs]
    end, quarter = rows.index(2 * ROWS), next(n for n, there in enumerate(rows) if there >= ROWS / 2)
    assert end > 40
    clocks, course = put(monkeypatch, SetClocks(steady=0.0)), Course()
    course.begin(EpochsTable(steps.feed.sink.path, steps.feed.name).read_all()[0].manifest, lambda: None, {})
    for number, manifest in enumerate(epochs[: end + 1]):
        clocks.steady = 1.0 + number
        course.committed(manifest, ())
        found = course.look()
        assert found is not None
        if number == quarter:
            truth = end - quarter
            print(f"told {found.copy}, and it took {truth} s")
            assert found.copy.likely is not None
            assert abs(found.copy.likely - truth) <= 0.3 * truth
            assert len(found.copies) == 2
            for one in found.copies:
                assert one.basis is Basis.KEYS
                assert one.expected == pytest.approx(ROWS, rel=0.03)
    assert found is not None
    assert found.copy == THROUGH


@pytest.mark.promise("status shows how far a run is, or why that is unknown")
def test_status_tells_it_of_a_run_and_of_none(
    steps: Steps, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # There is no forecast before the rows of some seconds are known.
    steps.set(copy={"chunk_rows_max": 40, "group_time": "0s", "throttle": {"rows_per_second": ROWS // 20}})
    written: list[Progress] = []
    really = Journal.put_progress

    def put(journal: Journal, progress: Progress) -> None:
        really(journal, progress)
        written.append(progress)

    monkeypatch.setattr(Journal, "put_progress", put)
    stop = threading.Event()
    run = threading.Thread(
        target=run_feed, args=(steps.feed,), kwargs={"until_caught_up": False, "stop": stop}
    )
    run.start()
    try:
        until("a forecast", lambda: any(one.whole.likely for one in written))
        catchment.dump(steps.file, "pause", wait=PATIENCE_SECONDS)
        name = f"{steps.schema}.t"
        until("that it is paused", lambda: written[-1].copy.why == f"{name} on -80: it is paused")
        capsys.readouterr()
        assert execute(["status", str(steps.file)]) == 0
        said = capsys.readouterr().out
        assert f"until all rows are copied: unknown: {name} on -80: it is paused" in said
        assert execute(["tables", str(steps.file)]) == 0
        parts = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name} on ")]
        assert len(parts) == 2
        assert all(line.endswith("to go: unknown: it is paused") for line in parts)
    finally:
        stop.set()
        run.join()
    assert execute(["status", str(steps.file), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["whole"] == {"why": NOBODY_RUNS}
    assert [part["shard"] for part in status["tables"][0]["parts"]] == ["-80", "80-"]
    assert 0 < status["tables"][0]["parts"][0]["rows"] < ROWS
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        assert read_status(store).rate is None
