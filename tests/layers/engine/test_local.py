"""Workers of this machine: they do tasks at the same time, and end with the driver, however it ends."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from catchment.engine.local import LocalEngine
from catchment.engine.nursery import Nursery
from catchment.model.errors import EngineError, ProgramFault, Retry
from catchment.model.source import Endpoint
from tests.world.patience import PATIENCE_SECONDS, until

WORKERS = 2


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    """For tests that leave it as it was."""
    with closing(LocalEngine(WORKERS)) as engine:
        yield engine


@pytest.fixture
def own() -> Iterator[LocalEngine]:
    """For tests that end it or its workers."""
    with closing(LocalEngine(WORKERS)) as engine:
        yield engine


def meet(task: tuple[Path, int]) -> int:
    """Wait until all workers are in such a task. Each then knows that none of them does another one."""
    place, number = task
    (place / str(number)).touch()
    until("all workers have a task at the same time", lambda: len(list(place.iterdir())) == WORKERS)
    return os.getpid()


def together(engine: LocalEngine, place: Path) -> set[int]:
    """The processes of all workers."""
    place.mkdir()
    return set(engine.each(meet, [(place, number) for number in range(WORKERS)]))


def ended(pids: set[int]) -> bool:
    """Whether all of these processes have ended; one that nobody has waited for yet is a zombie."""
    return all(_state(pid) in "Z" for pid in pids)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def await_end(pids: set[int]) -> None:
    until(f"{pids} end", lambda: ended(pids))


def written(*files: Path) -> set[int]:
    """The processes that `write_pid` names in the files."""
    until(f"{files} are written", lambda: all(file.exists() and file.read_text() for file in files))
    return {int(file.read_text()) for file in files}


def twice(number: int) -> int:
    return 2 * number


def test_receipts_come_in_the_order_of_the_tasks(engine: LocalEngine) -> None:
    assert engine.each(twice, range(100)) == [2 * number for number in range(100)]


def test_tasks_run_at_the_same_time_in_workers_that_stay(engine: LocalEngine, tmp_path: Path) -> None:
    first = together(engine, tmp_path / "first")
    assert len(first) == WORKERS
    assert os.getpid() not in first
    assert together(engine, tmp_path / "again") == first


def test_workers_end_at_rest_and_start_again(engine: LocalEngine, tmp_path: Path) -> None:
    first = together(engine, tmp_path / "first")
    engine.rest()
    await_end(first)
    assert not together(engine, tmp_path / "second") & first


def kill_oneself(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_worker_that_is_killed_fails_its_tasks_which_may_go_well_later(own: LocalEngine) -> None:
    with pytest.raises(EngineError, match="a worker of this machine ended before its task") as raised:
        own.each(kill_oneself, [1])
    assert raised.value.retry is Retry.SAME
    assert own.each(twice, [3]) == [6]


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


def test_what_runs_is_given_up_when_the_run_is_to_stop(own: LocalEngine, tmp_path: Path) -> None:
    files = [tmp_path / str(number) for number in range(3 * WORKERS)]
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(own.each, write_pid, list(map(str, files)))
        workers = written(*files[:WORKERS])
        own.cancel()
        with pytest.raises(EngineError):
            running.result(PATIENCE_SECONDS)
    await_end(workers)
    assert not any(file.exists() for file in files[WORKERS:]), "tasks that had not begun never begin"
    with pytest.raises(EngineError, match="stopped before its tasks began"):
        own.each(twice, [1])


DRIVER = """
import sys
from catchment.engine.local import LocalEngine
from tests.layers.engine.test_local import write_pid
LocalEngine(2).each(write_pid, [sys.argv[1] + "/a", sys.argv[1] + "/b"])
"""


def write_pid(path: str) -> None:
    """Say who does this task, which has no end."""
    Path(path).write_text(str(os.getpid()))
    threading.Event().wait()


def test_workers_end_when_the_driver_is_killed_in_the_middle_of_a_task(tmp_path: Path) -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)])
    workers = written(tmp_path / "a", tmp_path / "b")
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    await_end(workers)


FORKS = """
import os, sys
from pathlib import Path
from catchment.engine.local import LocalEngine
from catchment.engine.nursery import Nursery
from tests.layers.engine.test_local import meet_and_name_parent, open_files, write_pid
inherited = open(sys.argv[1] + "/held", "w")
nursery = Nursery.forked()
engine = LocalEngine(2, nursery)
print(engine.each(open_files, [0])[0], flush=True)
parents = engine.each(meet_and_name_parent, [(Path(sys.argv[1]) / "met", n) for n in range(2)])
print(set(parents) == {nursery.pid}, flush=True)
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


def meet_and_name_parent(task: tuple[Path, int]) -> int:
    meet(task)
    return os.getppid()


def test_workers_are_forked_from_the_driver_without_its_files_and_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "met").mkdir()
    with (tmp_path / "errors").open("wb") as errors:
        driver = subprocess.Popen(
            [sys.executable, "-c", FORKS, str(tmp_path)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    assert driver.stdout is not None
    assert driver.stdout.readline().strip() == str([str(tmp_path / "errors")])
    assert driver.stdout.readline().strip() == "True"
    workers = written(tmp_path / "a", tmp_path / "b")
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert driver.stdout.read() == "", "no process of the driver's holds its output any more"
    await_end(workers)


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
        await_end({nursery.pid})
        with pytest.raises(EngineError, match="a worker of this machine ended before its task"):
            engine.each(twice, [1])
        assert engine.each(twice, [1]) == [2]
