"""`catchment run --events json` in a process of its own: who waits for it blocks on the pipe of its events."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.model.position import LogOffset, reaches
from catchment.state.faults import VARIABLE
from tests.world.patience import PATIENCE_SECONDS, ran_out

Event = dict[str, Any]

PROGRAM = "from catchment.cli.main import main; main()"
# On a machine with so many processors that all tasks of an epoch run at the same time.
EIGHT_WORKERS = f"from catchment.engine import local; local.WORKERS_MIN = 8; {PROGRAM}"
_OVER = b"over"


@dataclass(frozen=True)
class Ended:
    """How a command ended: negative codes are signals, as in `subprocess`. `said`: on standard error."""

    code: int
    said: str


class ToldRun:
    """A run that tells its events. `events` has all that came so far; each `wait` goes on behind the event that the
    one before found."""

    def __init__(
        self,
        file: Path,
        *options: str,
        fault: str = "",
        environment: Mapping[str, str] | None = None,
        program: str = PROGRAM,
    ) -> None:
        self.events: list[Event] = []
        self.said = file.with_name(f"said.{time.monotonic_ns()}")
        self._news = threading.Condition()
        self._passed = 0
        self._over = False
        reading, self._writing = os.pipe()
        with self.said.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, "run", str(file), "--events", "json", *options],
                stdin=subprocess.DEVNULL,
                stdout=self._writing,
                stderr=said,
                env={**os.environ, **(environment or {}), VARIABLE: fault},
                process_group=0,  # signals may be sent to all of it, as a terminal does
            )
        threading.Thread(target=self._read, args=(reading,), daemon=True).start()
        threading.Thread(target=self._close, daemon=True).start()

    @property
    def pid(self) -> int:
        """Of the process, which leads its group."""
        return self.process.pid

    def wait(self, what: str, holds: Callable[[Event], object]) -> Event:
        """The first event of which `holds` is true, behind the one that was waited for before. The run must not end
        before it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._news:
            while True:
                while self._passed < len(self.events):
                    event = self.events[self._passed]
                    self._passed += 1
                    if holds(event):
                        return event
                assert not self._over, f"the run ended and still not: {what}\n{self._all()}"
                if not self._news.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    ran_out(f"{what}\n{self._all()}")

    def wait_for(self, event: str, **fields: object) -> Event:
        """The next event of that name with these fields."""
        return self.wait(
            f"{event} {fields}",
            lambda one: one["event"] == event and all(one.get(k) == v for k, v in fields.items()),
        )

    def wait_for_log(self, ends: Mapping[str, tuple[str, int]], **fields: object) -> Event:
        """A committed epoch with these fields that holds all of the shards' logs up to these ends; it may have come
        already."""

        def holds(event: Event) -> bool:
            return (
                event["event"] == "epoch"
                and all(event[field] == value for field, value in fields.items())
                and all(
                    reaches(offset_of(event["cut"][shard]), LogOffset(*end)) for shard, end in ends.items()
                )
            )

        with self._news:
            come = next(filter(holds, self.events[: self._passed]), None)
        return come or self.wait(f"an epoch up to {ends}", holds)

    def states(self) -> dict[str, str]:
        """Where each table stands by the events that came so far."""
        with self._news:
            found: dict[str, str] = {}
            for event in self.events:
                if event["event"] == "begun":
                    found = dict(event["tables"])
                elif event["event"] == "table":
                    found[event["table"]] = event["state"]
            return found

    def ended(self) -> Ended:
        """Wait for its end."""
        try:
            code = self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            ran_out(f"the run ends\n{self._all()}")
        return Ended(code, self.said.read_text())

    def last(self) -> Event:
        """The event of its end, once it has ended in order."""
        return self.wait_for("ended")

    def kill(self) -> None:
        """kill -9 of the process alone, whatever state it is in."""
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as pipe:
            for line in pipe:
                with self._news:
                    if line.rstrip().endswith(_OVER):  # behind half a line, where it was killed
                        self._over = True
                    else:
                        self.events.append(json.loads(line))
                    self._news.notify_all()
                    if self._over:
                        return

    def _close(self) -> None:
        """Say behind its last line that it has ended: what it has started may have its pipe for longer."""
        self.process.wait()
        os.write(self._writing, _OVER + b"\n")
        os.close(self._writing)

    def _all(self) -> str:
        return "\n".join([*map(json.dumps, self.events[-40:]), self.said.read_text()[-3000:]])


def offset_of(position: str) -> LogOffset:
    """The place in the log of a position as events tell it: `binlog.000001:3527 [0-121-4]`."""
    file, _, offset = position.partition(" ")[0].rpartition(":")
    return LogOffset(file, int(offset))
