"""How far a copy is: near the truth while it goes steadily, told to others, and quiet where nothing moves."""

import itertools
import json
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from catchment.feed.runner import run_feed
from catchment.model.progress import THROUGH, Basis, Progress
from catchment.state.journal import Journal
from catchment.state.store import Store
from catchment.watch.report import Observer, Report
from catchment.watch.status import read_status
from catchment.watch.table_status import NOBODY_RUNS
from tests.conftest import Shards
from tests.promises.exact.steps import Steps, run_here
from tests.world.patience import PATIENCE_SECONDS

ROWS = 15_000
ATTEMPTS = 4
STEADY = 0.15


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


class Copied:
    """A copy from its beginning to its end. `told`: what was said once a second. `rows`: what was there when."""

    def __init__(self, steps: Steps) -> None:
        self.told: list[tuple[float, Progress]] = []
        self.rows: list[tuple[float, int]] = []
        run_feed(
            steps.feed,
            until_caught_up=True,
            stop=threading.Event(),
            observer=Observer(committed=self._committed, progressed=self._progressed),
        )

    def _progressed(self, progress: Progress) -> None:
        self.told.append((time.monotonic(), progress))

    def _committed(self, report: Report) -> None:
        self.rows.append((time.monotonic(), sum(copy.rows for copy in report.manifest.cut.copies)))

    def moment(self, share: float) -> float:
        """When so much of the rows was there."""
        return next(at for at, rows in self.rows if rows >= share * 2 * ROWS)

    @property
    def steady(self) -> bool:
        """Whether the rows came evenly behind the first of them, on a machine that does other things as well."""
        moments = [self.moment(share) for share in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
        fifths = [after - before for before, after in itertools.pairwise(moments)]
        print("fifths", [round(one, 1) for one in fifths])
        mean = sum(fifths) / len(fifths)
        return all(abs(fifth - mean) <= STEADY * mean for fifth in fifths)


@pytest.mark.wide
def test_what_is_said_at_a_quarter_is_near_the_truth(steps: Steps, tmp_path: Path) -> None:
    """Of a copy that was not steady, nothing can be said: then another one is made."""
    for attempt in range(ATTEMPTS):
        steps.set(
            name=f"feed{attempt}",
            sink={"path": str(tmp_path / f"lake{attempt}")},
            state=str(tmp_path / f"{attempt}.db"),
        )
        copied = Copied(steps)
        if copied.steady:
            break
    else:
        pytest.skip("the machine was too busy for a steady copy")
    at, told = next((at, one) for at, one in copied.told if at >= copied.moment(0.25))
    truth = copied.moment(1.0) - at
    print(f"told {told.copy}, and it took {truth:.1f} s")
    assert told.copy.likely is not None
    assert abs(told.copy.likely - truth) <= 0.3 * truth
    for one in told.copies:
        assert one.basis is Basis.KEYS
        assert one.expected == pytest.approx(ROWS, rel=0.03)
    assert copied.told[-1][1].copy == THROUGH


def wait(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.wide
def test_status_tells_it_of_a_run_and_of_none(
    steps: Steps, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
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
        wait(lambda: any(one.whole.likely for one in written))
        catchment.dump(steps.file, "pause", wait=PATIENCE_SECONDS)
        name = f"{steps.schema}.t"
        wait(lambda: written[-1].copy.why == f"{name} on -80: it is paused")
        capsys.readouterr()
        assert execute(["status", str(steps.file)]) == 0
        said = capsys.readouterr().out
        assert f"until all rows are copied: unknown: {name} on -80: it is paused" in said
        assert execute(["tables", str(steps.file)]) == 0
        parts = [line for line in capsys.readouterr().out.splitlines() if line.startswith(f"{name} on ")]
        assert len(parts) == 2
        assert all(line.endswith("to go: unknown: it is paused") for line in parts)
        # The rates of a copy that is paused come to rest, and the journal with them.
        quiet_since = len(written)
        time.sleep(12)
        assert len(written) <= quiet_since + 1
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
