"""The runner's end of the process that keeps up a lake."""

import os
import select
import signal
import subprocess
import tempfile
from contextlib import suppress
from typing import IO

import msgspec

from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.sink.delta.upkeep.process import Outcome, start

_ANSWER_BYTES = 1 << 16
_END_SECONDS = 5.0


class Settler:
    """A process that carries out one order after the other for the lake at `root`. It is started when it is needed, and
    again when it died."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    def prepare(self) -> None:
        """Start the process ahead: it takes half a second before it can take an order. Raises OSError."""
        if self._process is None:
            if self._said is None:
                self._said = tempfile.TemporaryFile()  # noqa: SIM115 (the process writes to it, and may outlive us)
            self._process = start(self._root, self._said)

    def order(self, order: UpkeepOrder) -> "InProcess":
        """Give the process an order, when it has carried out the last one. Raises OSError."""
        self.prepare()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it died, which the attempt tells
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            process.stdin.flush()
        return InProcess(self, process)

    def outcome(self, process: "subprocess.Popen[bytes]", seconds: float | None) -> Outcome | None:
        """What a process answers, or how it died, within so many seconds (None: however long it takes)."""
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], seconds)[0]:
            return None
        answer = b""
        while not answer.endswith(b"\n"):
            part = os.read(process.stdout.fileno(), _ANSWER_BYTES)
            if not part:
                return self._died(process)
            answer += part
        return msgspec.json.decode(answer, type=Outcome)

    def kill(self) -> None:
        """End the process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._close(self._process)

    def end(self) -> None:
        """Let the process end, which has nothing to do."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        self._close(process)

    def _died(self, process: "subprocess.Popen[bytes]") -> Outcome:
        code = process.wait()
        self._close(process)
        return Outcome(code, "killed: is memory short?" if code == -signal.SIGKILL else self._last_words())

    def _close(self, process: "subprocess.Popen[bytes]") -> None:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self._process = None

    def _last_words(self) -> str:
        """The last line that the process wrote, which names the error."""
        assert self._said is not None
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


class InProcess:
    """`catchment.sink.delta.upkeep.attempt.Attempt` by a process of its own, which may be killed, and may outlive this
    one."""

    def __init__(self, settler: Settler, process: "subprocess.Popen[bytes]") -> None:
        self._settler, self._process = settler, process

    def outcome(self, seconds: float | None = 0.0) -> Outcome | None:
        """As the protocol has it."""
        return self._settler.outcome(self._process, seconds)

    def abandon(self) -> None:
        """As the protocol has it; the process is killed."""
        self._settler.kill()
