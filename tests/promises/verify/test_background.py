"""A run compares source and lake by itself: it tells what it finds, mends it if asked, and goes on where it stood."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial

import pytest

from catchment.cli.main import execute
from catchment.feed import verifier
from catchment.feed.verdict import Compared, Verdict
from catchment.feed.verify_progress import Progress
from catchment.state.verifications import Scope
from catchment.watch.status import ComparisonStatus, VerificationStatus
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_orders import running, wait
from tests.promises.exact.throttled import status
from tests.promises.verify.damage import (
    KEYS,
    ROWS,
    all_orders,
    damage,
    found,
    give,
    must_be_equal,
    must_be_found,
    plain,
)
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.planted import without

ALL_ROWS = len(KEYS) * (2 * ROWS + 2)
TO_FILE = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"


def told(steps: Steps) -> VerificationStatus:
    return status(steps).verification


def last(steps: Steps) -> ComparisonStatus:
    found = told(steps).last
    assert found is not None
    return found


def verified_by(steps: Steps, **options: object) -> None:
    metrics, told_in = steps.file.parent / "feed.prom", steps.file.parent / "told"
    steps.set(
        verify={"every": "1h", "budget": "100%", **options},
        metrics={"file": str(metrics)},
        notify={"command": [sys.executable, "-c", TO_FILE, str(told_in)], "on": ["difference"]},
    )


def notices(steps: Steps) -> list[dict[str, object]]:
    file = steps.file.parent / "told"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _has(steps: Steps, value: str) -> bool:
    return ("b", value) in steps.lake("texts", "v")


def _is_newer(steps: Steps, before: ComparisonStatus | None) -> bool:
    return told(steps).last != before


@pytest.mark.promise("a run verifies in the background and reports the result")
def test_equal_and_told_everywhere(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    verified_by(steps)
    with running(steps):
        wait(lambda: told(steps).last is not None)
        wait(lambda: "catchment_verified_timestamp_seconds" in samples(steps.file.parent / "feed.prom"))
        metrics = samples(steps.file.parent / "feed.prom")
        assert metrics["catchment_verify_differences last"] == 0
        ended = metrics["catchment_verified_timestamp_seconds"]
        due = metrics["catchment_verify_next_timestamp_seconds"]
        assert 0 < due - ended <= 3600
    assert (last(steps).rows, last(steps).differences, last(steps).tables) == (ALL_ROWS, 0, {})
    assert told(steps).now is None
    assert execute(["status", str(steps.file)]) == 0
    said = capsys.readouterr().out
    assert f"{ALL_ROWS:,} rows as of epoch" in said
    assert f"the next comparison begins at {told(steps).next}" in said
    first = last(steps)
    with running(steps):
        steps.everywhere("UPDATE numbers SET v = 'later' WHERE id = 1")
        wait(lambda: ("a", "later") in steps.lake("numbers", "v"))
        assert last(steps) == first, "it is not due"
    assert notices(steps) == []


def test_what_differs_is_told_and_left(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    for table in KEYS:
        damage(steps, table)
    verified_by(steps)
    with running(steps):
        wait(lambda: told(steps).last is not None)
        wait(lambda: notices(steps))
    assert last(steps).tables.keys() == {f"{steps.schema}.{table}" for table in KEYS}
    assert last(steps).mended == 0
    must_be_found(steps)
    assert {one["event"] for one in notices(steps)} == {"difference"}
    assert notices(steps)[-1]["tables"] == last(steps).tables
    loud = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert any("source and lake differed in" in message for message in loud)


@pytest.mark.promise("a run repairs the differences that its background verify finds")
def test_what_differs_is_mended(steps: Steps) -> None:
    for table in KEYS:
        damage(steps, table)
    verified_by(steps, repair=True)
    with running(steps):
        wait(lambda: told(steps).last is not None)
    assert last(steps).mended == last(steps).differences > 0
    assert last(steps).left == ()
    must_be_equal(steps)


def test_tables_and_a_sample(steps: Steps) -> None:
    plain(steps, "numbers", without("id", 3))
    verified_by(steps, tables=[f"{steps.schema}.*", f"!{steps.schema}.numbers"], sample="50%")
    with running(steps):
        wait(lambda: told(steps).last is not None)
    assert last(steps).differences == 0
    assert 0 < last(steps).rows < ALL_ROWS


def test_it_begins_again_and_again(steps: Steps) -> None:
    verified_by(steps, every="1s")
    with running(steps):
        for _ in range(3):
            wait(partial(_is_newer, steps, told(steps).last))


def slowly(steps: Steps) -> str:
    """Run until a comparison has begun that would take minutes, and a part is compared; when it began."""
    verified_by(steps, budget="1%")
    with running(steps):
        wait(lambda: (now := told(steps).now) is not None and now.rows > 0)
        now = told(steps).now
        assert now is not None
        return now.began


def test_a_later_run_goes_on_where_it_stood(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    resumed: list[int] = []

    class Seen(Progress):
        def begun(self, scope: Scope, compared: Compared, verdict: Verdict) -> Compared:
            found = super().begun(scope, compared, verdict)
            resumed.append(verdict.resumed)
            return found

    monkeypatch.setattr(verifier, "Progress", Seen)
    for table in KEYS:
        damage(steps, table)
    began = slowly(steps)
    assert execute(["verify", str(steps.file)]) == 1, "the command has its own place"
    assert slowly(steps) == began
    verified_by(steps, repair=True)
    with running(steps):
        wait(lambda: told(steps).last is not None)
    assert resumed[0] == 0
    assert resumed[-1] > 0, "nothing is read twice"
    assert last(steps).began == began
    assert last(steps).mended == last(steps).differences > 0
    must_be_equal(steps)
    assert told(steps).now is None


def test_a_locked_table_holds_up_neither_the_loop_nor_the_end(steps: Steps) -> None:
    verified_by(steps)
    processes = "SELECT 1 FROM information_schema.processlist"
    waits = f"{processes} WHERE info LIKE '%{steps.schema}%' AND state LIKE '%metadata lock'"
    with closing(steps.servers["a"].connect()) as holder:
        holder.cursor().execute(f"LOCK TABLES {steps.schema}.numbers WRITE")
        with running(steps) as run:
            until("a comparison that waits for the lock", lambda: steps.servers["a"].sql(waits))
            steps.sql("b", "UPDATE texts SET v = 'on b' WHERE id = 1")
            wait(lambda: ("b", "on b") in steps.lake("texts", "v"))
            run.stopping.set()
            run.join(PATIENCE_SECONDS)
            assert not run.is_alive()


def test_a_flag_file_holds_up_comparison_and_repair(steps: Steps) -> None:
    for table in KEYS:
        damage(steps, table)
    flag = steps.file.parent / "wait"
    flag.touch()
    verified_by(steps, repair=True)
    steps.set(copy={"chunk_rows_max": 7, "group_time": "0s", "throttle": {"flag_file": str(flag)}})
    with running(steps):
        wait(lambda: (now := told(steps).now) is not None and "flag_file" in now.waits)
        steps.everywhere("UPDATE texts SET v = 'later' WHERE id = 1")
        wait(lambda: ("b", "later") in steps.lake("texts", "v"))
        now = told(steps).now
        assert now is not None
        assert now.rows == 0
        flag.unlink()
        wait(lambda: told(steps).last is not None)
    assert last(steps).mended > 0
    must_be_equal(steps)


def test_orders_to_mend_wait_behind_a_flag_file(steps: Steps) -> None:
    plain(steps, "numbers", without("id", 3))
    differing = found(steps).differing
    flag = steps.file.parent / "wait"
    flag.touch()
    steps.set(copy={"chunk_rows_max": 7, "group_time": "0s", "throttle": {"flag_file": str(flag)}})
    with running(steps):
        give(steps, differing)
        for turn in range(5):
            steps.everywhere(f"UPDATE texts SET v = 'turn {turn}' WHERE id = 1")
            wait(partial(_has, steps, f"turn {turn}"))
        assert all(kept.answer is None for kept in all_orders(steps))
        flag.unlink()
        wait(lambda: all(kept.answer is not None for kept in all_orders(steps)))
    must_be_equal(steps)


def test_the_command_keeps_to_the_rate(steps: Steps) -> None:
    steps.set(copy={"chunk_rows_max": 7, "group_time": "0s", "throttle": {"rows_per_second": 10}})
    began = time.monotonic()
    assert execute(["verify", str(steps.file), "--table", f"{steps.schema}.numbers"]) == 0
    assert time.monotonic() - began > (ROWS - 20) / 10


def test_kills(steps: Steps) -> None:
    """The process is killed again and again; what it found is not forgotten, and all is mended in the end."""
    for table in KEYS:
        damage(steps, table)
    verified_by(steps, budget="5%", repair=True)
    steps.set(engine="local")
    first, rows = None, 0
    for _ in range(2):
        command = [sys.executable, "-m", "catchment.cli.main", "run", str(steps.file)]
        process = subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL)
        try:
            now = until("more that is compared", partial(_compared, steps, rows))
            assert now is not None
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        first, rows = first or now.began, now.rows
        assert now.began == first
    verified_by(steps, repair=True)
    with running(steps):
        wait(lambda: told(steps).last is not None and told(steps).now is None)
    assert last(steps).began == first
    must_be_equal(steps)


def _compared(steps: Steps, rows: int) -> ComparisonStatus | None:
    """A comparison that has come further than so many rows."""
    if not status(steps).runner or (now := told(steps).now) is None:
        return None
    return now if now.rows > rows else None
