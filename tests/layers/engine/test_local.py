"""Workers of this machine: they do tasks at the same time, and end with the driver, however it ends."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from catchment.engine.local import LocalEngine
from catchment.model.errors import EngineError, ProgramFault, Retry
from catchment.model.source import Endpoint
from tests.world.patience import PATIENCE_SECONDS

WORKERS = 2


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    with closing(LocalEngine(WORKERS)) as engine:
        yield engine


def pid_after(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def ended(pids: set[int]) -> bool:
    """Whether all of these processes have ended; one that nobody has waited for yet is a zombie."""
    return all(_state(pid) in "Z" for pid in pids)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def twice(number: int) -> int:
    return 2 * number


def test_receipts_come_in_the_order_of_the_tasks(engine: LocalEngine) -> None:
    assert engine.each(twice, range(100)) == [2 * number for number in range(100)]


def test_tasks_run_at_the_same_time_in_workers_that_stay(engine: LocalEngine) -> None:
    first = set(engine.each(pid_after, [0.3] * WORKERS))
    assert len(first) == WORKERS
    assert os.getpid() not in first
    assert set(engine.each(pid_after, [0.3] * WORKERS)) == first


def test_workers_end_at_rest_and_start_again(engine: LocalEngine) -> None:
    first = set(engine.each(pid_after, [0.1] * WORKERS))
    engine.rest()
    wait_until(lambda: ended(first))
    second = set(engine.each(pid_after, [0.1] * WORKERS))
    assert not second & first


def kill_oneself(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_worker_that_is_killed_fails_its_tasks_which_may_go_well_later(engine: LocalEngine) -> None:
    with pytest.raises(EngineError, match="a worker of this machine ended before its task") as raised:
        engine.each(kill_oneself, [1])
    assert raised.value.retry is Retry.SAME
    assert engine.each(twice, [3]) == [6]


def lack_memory(number: int) -> int:
    raise MemoryError(f"{number} bytes")


def test_memory_that_is_short_may_be_there_later(engine: LocalEngine) -> None:
    with pytest.raises(EngineError, match="lacks memory: 7 bytes") as raised:
        engine.each(lack_memory, [7])
    assert raised.value.retry is Retry.SAME
    assert engine.each(twice, [3]) == [6]


@dataclass(frozen=True)
class WithEndpoint:
    endpoint: Endpoint


def break_down(task: WithEndpoint) -> int:
    raise LookupError(f"cannot log in with {task.endpoint.password}")


def test_a_fault_of_ours_is_told_once_and_shows_no_password(
    engine: LocalEngine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), pytest.raises(ProgramFault, match=r"log in with \*\*\*") as raised:
        engine.each(break_down, [WithEndpoint(Endpoint("s", "db1", 3306, "catchment", "hunter2-secret"))])
    assert "in break_down" in caplog.text
    assert "hunter2" not in caplog.text + str(raised.value)
    assert engine.each(twice, [3]) == [6]


def test_what_runs_is_given_up_when_the_run_is_to_stop(engine: LocalEngine) -> None:
    began = time.monotonic()
    engine.each(twice, [1])
    threading.Timer(0.3, engine.cancel).start()
    with pytest.raises(EngineError):
        engine.each(pid_after, [PATIENCE_SECONDS] * 3 * WORKERS)
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
    with pytest.raises(EngineError, match="stopped before its tasks began"):
        engine.each(twice, [1])


DRIVER = """
import sys
from catchment.engine.local import LocalEngine
from tests.layers.engine.test_local import write_pid
LocalEngine(2).each(write_pid, [sys.argv[1] + "/a", sys.argv[1] + "/b"])
"""


def write_pid(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(10 * PATIENCE_SECONDS)


def test_workers_end_when_the_driver_is_killed_in_the_middle_of_a_task(tmp_path: Path) -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)])
    files = [tmp_path / "a", tmp_path / "b"]
    wait_until(lambda: all(file.exists() and file.read_text() for file in files))
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_until(lambda: ended({int(file.read_text()) for file in files}))
