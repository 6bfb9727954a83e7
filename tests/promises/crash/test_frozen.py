"""A run and a settle that sleep past the lease and wake up after another run came: they write nothing."""

import os
import signal
from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import LeaseLost
from tests.promises.crash.conftest import MakeLife

# More tables than the sink has threads: when one is committed, others have not begun.
TABLES = 12


def asleep(pid: int) -> None:
    """Wait until a process that this one has started has stopped itself."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"it ended with {status}"


@pytest.fixture
def state(pair: dict[str, PrivateServer]) -> Iterator[str]:
    """A state store in MariaDB. One that sleeps in the middle of a transaction holds its row alone there, and the
    server ends that session; in SQLite it would hold the file."""
    server = pair["-80"]
    server.sql(
        "CREATE DATABASE frozen",
        "GRANT ALL ON frozen.* TO catchment@'%'",
    )
    yield f"mysql://catchment:{server.password}@{server.host}:{server.port}/frozen"
    server.sql("DROP DATABASE frozen")


@pytest.mark.promise("one run at a time: a lease in the state store, and a fence in every commit")
def test_a_run_and_a_settle_that_wake_up_too_late_write_nothing(
    pair: dict[str, PrivateServer], live: MakeLife, state: str, capfd: pytest.CaptureFixture[str]
) -> None:
    life = live(pair, count=TABLES)
    life.describe(sink=life.settled_late, state=state)
    life.load(10)
    assert life.run() == 0, capfd.readouterr().err
    life.touch(-1)
    # It leaves much to settle.
    assert life.told("--until-caught-up", fault="during-settle:1").ended().code == -signal.SIGKILL
    life.touch(0)
    run = life.told("--until-caught-up", fault="between-applies:1:freeze")
    asleep(run.pid)
    settle = life.start("settle", fault="during-settle:2:freeze")
    asleep(settle.process.pid)
    life.touch(1)
    assert life.run() == 0, capfd.readouterr().err  # when the lease has stood still for its length
    life.must_be_exact()
    for pid, ended in ((run.pid, run.ended), (settle.process.pid, settle.ended)):
        os.kill(pid, signal.SIGCONT)
        how = ended()
        assert how.code == LeaseLost.exit_code, how
        assert "another runner took over" in how.said
    assert run.last()["error"]["kind"] == "LeaseLost"
    life.must_be_exact()
    life.touch(2)
    assert life.run() == 0, capfd.readouterr().err
    life.must_be_exact()
