"""`catchment run` in a process of its own, which is ended, killed or made to stand still."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress

from sqlalchemy.engine import make_url

from catchment.config import Feed
from catchment.model.errors import INTERRUPTED, StateError
from catchment.model.table_state import TableState
from catchment.state.store import Store
from catchment.watch.status import Status, read_status
from tests.promises.exact.steps import Steps
from tests.world.patience import PATIENCE_SECONDS

LOOK_SECONDS = 0.2
# `catchment`, on a machine with so many processors that all tasks of an epoch run at the same time.
PROGRAM = (
    "from catchment.engine import local; local.WORKERS_MIN = 8; from catchment.cli.main import main; main()"
)


class Run:
    """`catchment run` in a process of its own."""

    def __init__(self, steps: Steps) -> None:
        self.feed = steps.feed
        self.said = steps.file.with_name("said")
        with self.said.open("a") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "run", str(steps.file)],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )

    def wait(self, holds: Callable[[Status], object]) -> Status:
        """Wait until `holds` of the feed's status; the run must not end by itself."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            assert self.process.poll() is None, self.said.read_text()
            assert time.monotonic() < deadline, self.said.read_text()
            with suppress(StateError):  # there is no store yet
                found = status_of(self.feed)
                if holds(found):
                    return found
            time.sleep(LOOK_SECONDS)

    def await_copied(self) -> None:
        """Wait until all rows are copied."""
        self.wait(
            lambda status: status.tables and all(one.state is TableState.FOLLOWING for one in status.tables)
        )

    def stop(self) -> None:
        """End it in order."""
        self.process.terminate()
        assert self.process.wait(PATIENCE_SECONDS) == INTERRUPTED, self.said.read_text()

    def stand_still(self) -> None:
        """Stop it where it holds no lock of its state store, a file: others would wait for that, and end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            os.kill(self.process.pid, signal.SIGSTOP)
            _, status = os.waitpid(self.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), self.said.read_text()
            if not _is_locked(self.feed):
                return
            self.go_on()
            assert time.monotonic() < deadline, self.said.read_text()
            time.sleep(LOOK_SECONDS)

    def go_on(self) -> None:
        """After it stood still."""
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Whatever state it is in."""
        self.process.kill()
        self.process.wait()


def status_of(feed: Feed) -> Status:
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        return read_status(store)


def _is_locked(feed: Feed) -> bool:
    """Whether somebody reads or writes the file of a feed's state store."""
    file = make_url(feed.state.get_secret_value()).database
    with closing(sqlite3.connect(f"file:{file}?mode=rw", uri=True, timeout=0)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return True
    return False
