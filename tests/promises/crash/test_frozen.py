"""A runner and a settle that sleep past the lease and wake up after another runner came: they write nothing."""

import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.demo.server import PrivateServer
from catchment.model.errors import LeaseLost
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import SECONDS_MAX, Command, Life

TRIES = 5


def asleep(command: Command) -> int:
    """Wait until the process has stopped itself; its id."""
    pid = command.process.pid
    deadline = time.monotonic() + SECONDS_MAX
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert command.process.poll() is None, command.output.read_text()
        assert time.monotonic() < deadline, command.output.read_text()
        time.sleep(0.05)
    return pid


def sleeping_runner(life: Life) -> Command:
    """A runner asleep between two tables: there are more of them than the sink has threads.

    One that fell asleep while it held SQLite's lock is ended and another one started: until it wakes up nobody
    can write to that store, and every command says so.
    """
    for step in range(TRIES):
        life.touch(step)
        runner = life.start("run", "--until-caught-up", fault="between-applies:1:freeze")
        asleep(runner)
        if not locked(life):
            return runner
        runner.process.kill()
        runner.process.wait()
    raise AssertionError("every runner fell asleep with the lock of its state store")


def locked(life: Life) -> bool:
    """Whether somebody holds the lock of the state store."""
    with closing(sqlite3.connect(life.state, timeout=0)) as store:
        try:
            store.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False


@pytest.mark.wide
def test_a_runner_and_a_settle_that_wake_up_too_late_write_nothing(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
) -> None:
    life = live(pair, count=12)
    life.describe(engine="local", sink=life.settled_late)
    life.load(20)
    assert life.run() == 0, capfd.readouterr().err
    life.make_large()
    life.touch(-1)
    assert (
        life.command("run", "--until-caught-up", fault="during-settle:1").code == 0
    )  # the settle is killed, and finds much to do
    runner = sleeping_runner(life)
    sleepers = [(runner, runner.process.pid)]
    settle = life.start("settle", fault="during-settle:2:freeze")
    sleepers.append((settle, asleep(settle)))
    life.touch(1)
    assert life.run() == 0, capfd.readouterr().err
    life.must_be_exact()
    for command, pid in sleepers:
        os.kill(pid, signal.SIGCONT)
        ended = command.ended()
        assert ended.code == LeaseLost.exit_code, ended
        assert "another runner took over" in ended.said
    life.must_be_exact()
    life.touch(2)
    assert life.run() == 0, capfd.readouterr().err
    life.must_be_exact()
