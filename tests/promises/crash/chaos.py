"""Events that befall a running feed at random: crashes of servers, drivers and workers, DDL, commands beside it."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pymysql.err import MySQLError

from catchment.demo.server import PrivateServer
from tests.promises.crash.test_work import children

COMMAND_SECONDS = 240.0
# Whatever happens: no difference, no fault of the feed file's or of the program's, no end that does not come. All other
# codes tell of what was done to the feed.
NEVER = (1, 2, 70, None)
STOP_SECONDS = 30.0
_TYPES = ("VARCHAR(20)", "BIGINT")


def descendants(process: int) -> list[int]:
    """All processes that a process has started, and those that these have started."""
    found: list[int] = []
    left = [process]
    while left:
        mine = children(left.pop())
        found += mine
        left += mine
    return found


@dataclass
class Chaos:
    """What happens to one feed. `chance` decides; `said` tells what was done, `faults` what must not be."""

    file: Path
    servers: Mapping[str, PrivateServer]
    schema: str
    chance: random.Random
    said: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._commands = 0
        self._extra: dict[str, str] = {}
        self._run: subprocess.Popen[bytes] | None = None

    def round(self, seconds: float) -> None:
        """Run the feed for so long, with events, and end it in one of four ways."""
        self._run, output = self._start("run")
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._run.poll() is None:
            time.sleep(self.chance.uniform(0.2, 4))
            if self._run.poll() is None and self.chance.random() < 0.6:
                self._event()
        code = self._run.poll()
        if code is not None:
            # Away for too long, or its Java killed: told, and the same command goes on.
            self._say(f"the run ended with {code}: {output.read_text()[-300:]}")
            if code in NEVER:
                self.faults.append(f"run: exit code {code}: {output.read_text()[-2000:]}")
            return
        self._end(output)

    def catch_up(self) -> None:
        """Run until caught up, and verify; nobody may write meanwhile."""
        for command in (("run", "--until-caught-up"), ("verify",)):
            if code := self._ended(*command):
                self.faults.append(f"{command}: exit code {code}")

    def _event(self) -> None:
        many = self._crash_server, self._flush, self._settle, self._kill_child
        events: list[Callable[[], None]] = [*many, *many, self._crash_server, self._alter, self._alter]
        events += [self._stop_server, self._verify, self._status, self._second, self._freeze]
        event = self.chance.choice(events)
        self._say(event.__name__.strip("_"))
        event()

    def _any(self) -> tuple[str, PrivateServer]:
        return self.chance.choice(list(self.servers.items()))

    def _crash_server(self) -> None:
        _, server = self._any()
        server.kill9()
        time.sleep(self.chance.choice((0, 0.5, 3, 8)))
        server.start()

    def _stop_server(self) -> None:
        _, server = self._any()
        server.stop()
        server.start()

    def _flush(self) -> None:
        _, server = self._any()
        server.sql(*["FLUSH BINARY LOGS"] * self.chance.choice((1, 3)))

    def _alter(self) -> None:
        """Add the column `extra` of orders on one shard or drop it there; where several have it, with one type."""
        shard, server = self._any()
        kind = next(iter(self._extra.values()), self.chance.choice(_TYPES))
        change = "DROP COLUMN extra" if shard in self._extra else f"ADD COLUMN extra {kind}"
        try:
            server.sql("SET lock_wait_timeout = 5", f"ALTER TABLE orders {change}", database=self.schema)
        except MySQLError as error:
            self._say(f"no ALTER: {error}")
            return
        if self._extra.pop(shard, None) is None:
            self._extra[shard] = kind

    def _settle(self) -> None:
        if self.chance.random() < 0.5:
            self._ended("settle")
            return
        process, _ = self._start("settle")
        time.sleep(self.chance.uniform(0.3, 1.5))
        process.kill()
        process.wait()

    def _verify(self) -> None:
        self._ended("verify")

    def _status(self) -> None:
        self._ended("status", "--json")

    def _second(self) -> None:
        self._ended("run", "--until-caught-up")

    def _kill_child(self) -> None:
        assert self._run is not None
        started = descendants(self._run.pid)
        with suppress(ProcessLookupError):
            if started:
                os.kill(self.chance.choice(started), signal.SIGKILL)

    def _freeze(self) -> None:
        assert self._run is not None
        os.kill(self._run.pid, signal.SIGSTOP)
        time.sleep(self.chance.choice((1, 3, 12)))
        os.kill(self._run.pid, signal.SIGCONT)

    def _end(self, output: Path) -> None:
        assert self._run is not None
        how = self.chance.choice(("driver", "driver", "all", "SIGTERM", "SIGINT"))
        self._say(f"end: {how}")
        if how == "all":
            os.killpg(self._run.pid, signal.SIGKILL)
        else:
            self._run.send_signal(signal.SIGKILL if how == "driver" else signal.Signals[how])
        try:
            code = self._run.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._run.kill()
            code = None
        if code != (130 if how.startswith("SIG") else -signal.SIGKILL):
            self.faults.append(f"run: {how} ended it with {code}: {output.read_text()[-2000:]}")

    def _ended(self, *command: str) -> int | None:
        """Run a command to its end; its exit code, None when it did not end."""
        process, output = self._start(*command)
        try:
            code: int | None = process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            code = None
        self._say(f"{command} -> {code}")
        if code in NEVER:
            self.faults.append(f"{command}: exit code {code}: {output.read_text()[-2000:]}")
        return code

    def _start(self, name: str, *options: str) -> tuple["subprocess.Popen[bytes]", Path]:
        self._commands += 1
        output = self.file.with_name(f"output.{self._commands}")
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "catchment.cli.main", name, str(self.file), *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        return process, output

    def _say(self, what: str) -> None:
        self.said.append(what)
