"""Keys of a terminal that a run is attached to: orders are given, and the terminal is given back at every end."""

import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from catchment.cli.output import EXIT_INTERRUPTED
from catchment.model.table_state import TableState
from catchment.state.store import Store
from catchment.watch.status import read_status
from catchment.watch.table_status import TableStatus
from tests.conftest import Shards
from tests.promises.exact.steps import Steps
from tests.world.patience import PATIENCE_SECONDS, until

ROWS = 6000
STARTS = "from catchment.cli.start import main; main()"
# Standard input becomes the terminal of the session.
LEADS = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
ENDED_BY = re.compile(r"(stopped|caught up) at epoch")


@pytest.fixture
def steps(shards: Shards, fresh_schema: Callable[..., str], tmp_path: Path) -> Steps:
    begun = Steps(tmp_path, {"-80": shards[0]}, fresh_schema(*shards))
    begun.set(copy={"chunk_rows_max": 20, "group_time": "0s", "groups_per_shard": 1}, engine="local")
    values = ", ".join(f"({key}, {key})" for key in range(1, ROWS + 1))
    begun.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", f"INSERT INTO t VALUES {values}")
    return begun


class Terminal:
    """A command in a terminal of its own, where it leads the foreground, as a shell starts it."""

    def __init__(self, steps: Steps) -> None:
        self._own, self.line = pty.openpty()
        self.before = self.settings()
        self._said: list[bytes] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", LEADS + STARTS, "run", str(steps.file)],
            stdin=self.line,
            stdout=self.line,
            stderr=self.line,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "160", "LINES": "40"},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.line)

    @property
    def cooked(self) -> bool:
        """Whether the terminal is as it was: it gives whole lines, and shows what is typed."""
        return self.settings() == self.before

    @property
    def said(self) -> str:
        return b"".join(self._said).decode(errors="replace")

    def press(self, keys: bytes) -> None:
        os.write(self._own, keys)

    def wait(self, what: str, holds: Callable[[], object]) -> None:
        """Wait until something holds while the command goes on."""

        def held() -> object:
            assert self.process.poll() is None, self.said[-3000:]
            return holds()

        until(what, held, seen=lambda: self.said[-3000:])

    def ended(self) -> int:
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_SECONDS)
        os.close(self.line)
        self._reader.join(PATIENCE_SECONDS)
        os.close(self._own)

    def _read(self) -> None:
        with suppress(OSError):  # the other end is closed
            while part := os.read(self._own, 1 << 16):
                self._said.append(part)


@contextmanager
def terminal(steps: Steps) -> Iterator[Terminal]:
    opened = Terminal(steps)
    try:
        yield opened
    finally:
        opened.close()


def table(steps: Steps) -> TableStatus:
    with closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name, create=False)) as store:
        (found,) = read_status(store).tables
        return found


def copying(steps: Steps) -> bool:
    with suppress(Exception):  # there is no store yet
        return table(steps).rows > 0
    return False


def await_copy(steps: Steps, seen: Terminal) -> None:
    seen.wait("the run copies", lambda: copying(steps))
    assert not seen.cooked


def test_p_pauses_r_resumes_and_q_ends_in_order(steps: Steps) -> None:
    """Behind a stop and a continue, too."""
    with terminal(steps) as seen:
        await_copy(steps, seen)
        seen.wait("the keys are shown", lambda: "p pause, r resume, q end" in seen.said)
        seen.press(b"p")
        seen.wait("the table is paused", lambda: table(steps).state is TableState.PAUSED)
        seen.wait("the answer is shown", lambda: "pause: done for 1 tables" in seen.said)
        rows = table(steps).rows
        assert rows < ROWS
        seen.press(b"xyz\n\x1b[A")  # keys without a meaning
        termios.tcsetattr(seen.line, termios.TCSANOW, seen.before)  # as a shell does behind Ctrl-Z
        seen.process.send_signal(signal.SIGSTOP)
        seen.process.send_signal(signal.SIGCONT)
        seen.wait("the terminal gives keys at once again", lambda: not seen.cooked)
        seen.press(b"r")
        seen.wait("more rows are copied", lambda: table(steps).rows > rows)
        seen.press(b"q")
        assert seen.ended() == 0, seen.said[-3000:]
        assert ENDED_BY.search(seen.said)
        assert seen.cooked


@pytest.mark.wide
def test_the_terminal_is_given_back_behind_a_signal(steps: Steps) -> None:
    with terminal(steps) as seen:
        await_copy(steps, seen)
        seen.process.send_signal(signal.SIGTERM)
        assert seen.ended() == EXIT_INTERRUPTED
        assert ENDED_BY.search(seen.said)
        assert seen.cooked


@pytest.mark.wide
def test_ctrl_c_is_what_it_was_and_twice_ends_at_once(steps: Steps) -> None:
    """The state store is locked, so that the first one cannot end the run in order."""
    with terminal(steps) as seen:
        await_copy(steps, seen)
        with closing(sqlite3.connect(make_url(steps.feed.state.get_secret_value()).database or "")) as store:
            store.execute("BEGIN EXCLUSIVE")

            def pressed_again() -> bool:
                seen.press(b"\x03")
                return "catchment: stopped again, ended at once" in seen.said

            until("Ctrl-C was pressed twice", pressed_again, every=0.2, seen=lambda: seen.said[-3000:])
            assert seen.ended() == EXIT_INTERRUPTED
        assert not ENDED_BY.search(seen.said)
        assert seen.cooked


@pytest.mark.wide
def test_it_is_given_back_behind_an_error(steps: Steps) -> None:
    steps.set(schema_change="fail")
    with terminal(steps) as seen:
        await_copy(steps, seen)
        steps.everywhere("ALTER TABLE t ADD COLUMN w INT")
        assert seen.ended() == 3
        assert seen.cooked


@pytest.mark.wide
def test_without_a_terminal_to_read_nothing_is_read(steps: Steps, tmp_path: Path) -> None:
    """Standard input is a pipe with keys in it, and output is a file, as under cron."""
    with (tmp_path / "said").open("w") as said:
        run = subprocess.Popen(
            [sys.executable, "-c", STARTS, "run", str(steps.file)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            assert run.stdin is not None
            run.stdin.write(b"pq")
            run.stdin.flush()
            until("the run copies", lambda: copying(steps))
            rows = table(steps).rows
            until("it copies on", lambda: run.poll() is not None or table(steps).rows > rows + 200)
            assert run.poll() is None
            assert table(steps).state is not TableState.PAUSED
        finally:
            run.terminate()
            assert run.wait(PATIENCE_SECONDS) == EXIT_INTERRUPTED
