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
from catchment.engine.nursery import Nursery
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


FORKS = """
import os, sys
from catchment.engine.local import LocalEngine
from catchment.engine.nursery import Nursery
from tests.layers.engine.test_local import open_files, parent, write_pid
inherited = open(sys.argv[1] + "/held", "w")
nursery = Nursery.forked()
engine = LocalEngine(2, nursery)
print(engine.each(open_files, [0])[0], flush=True)
print(set(engine.each(parent, [0, 0])) == {nursery.pid}, flush=True)
engine.each(write_pid, [sys.argv[1] + "/a", sys.argv[1] + "/b"])
"""


def open_files(_: int) -> list[str]:
    """Files that are open in a worker, by name."""
    names = []
    for number in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    return [name for name in names if name.startswith("/") and not name.startswith(("/dev/null", "/proc/"))]


def parent(_: int) -> int:
    time.sleep(0.1)
    return os.getppid()


def test_workers_are_forked_from_the_driver_without_its_files_and_end_with_it(tmp_path: Path) -> None:
    with (tmp_path / "errors").open("wb") as errors:
        driver = subprocess.Popen(
            [sys.executable, "-c", FORKS, str(tmp_path)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert driver.stdout is not None
    assert driver.stdout.readline().strip() == str([str(tmp_path / "errors")])
    assert driver.stdout.readline().strip() == "True"
    files = [tmp_path / "a", tmp_path / "b"]
    wait_until(lambda: all(file.exists() and file.read_text() for file in files))
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert driver.stdout.read() == "", "no process of the driver's holds its output any more"
    wait_until(lambda: ended({int(file.read_text()) for file in files}))


def test_nothing_is_forked_beside_other_threads() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        assert Nursery.forked() is None
    finally:
        release.set()
        thread.join()


def test_a_nursery_that_is_killed_is_replaced() -> None:
    nursery = Nursery.started()
    with closing(LocalEngine(WORKERS, nursery)) as engine:
        assert engine.each(twice, [1]) == [2]
        engine.rest()
        os.kill(nursery.pid, signal.SIGKILL)
        wait_until(lambda: ended({nursery.pid}))
        with pytest.raises(EngineError, match="a worker of this machine ended before its task"):
            engine.each(twice, [1])
        assert engine.each(twice, [1]) == [2]
