"""A proxy before an S3 server that delays, refuses, loses and repeats requests by rules, and counts them.

It is a process of its own: a library that waits for the network with Python's lock in hand, as delta-rs' queries do,
would wait for a thread of its own process for ever.
"""

import asyncio
import multiprocessing
from collections import Counter
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from tests.world.patience import PATIENCE_SECONDS
from tests.world.s3.faults import Rule
from tests.world.s3.kinds import Kind
from tests.world.s3.relay import Relay, Seen


class S3Proxy:
    """Listens on a free port of 127.0.0.1 (`endpoint`) and passes requests on to the server on another.

    Use as a context manager.
    """

    def __init__(self, server_port: int) -> None:
        # not a fork: this process has threads
        spawn = multiprocessing.get_context("spawn")
        self._commands, self._its_end = spawn.Pipe()
        self._process = spawn.Process(target=_obey, args=(server_port, self._its_end), daemon=True)

    def rule(self, *rules: Rule) -> None:
        """Follow these rules, and no others, from now on; none: pass all on."""
        self._ask("rule", *rules)

    def seen(self) -> list[Seen]:
        """The requests answered or dropped since the start or `forget`, in that order."""
        seen: list[Seen] = self._ask("seen")
        return seen

    def counts(self) -> Counter[Kind]:
        """How many of each kind `seen` has."""
        return Counter(one.kind for one in self.seen())

    def methods(self) -> Counter[str]:
        """How many of each method `seen` has."""
        return Counter(one.method for one in self.seen())

    def connections(self) -> int:
        """How many connections clients made since the start or `forget`."""
        return int(self._ask("connections"))

    def forget(self) -> None:
        """Count from 0, and drop what Fault.LATE kept."""
        self._ask("forget")

    def deliver_late(self) -> list[int]:
        """Give the server now what Fault.LATE kept, in order; what it said."""
        statuses: list[int] = self._ask("deliver_late")
        return statuses

    def __enter__(self) -> Self:
        self._process.start()
        self._its_end.close()  # else the end of the process would not be seen here
        self.endpoint = f"http://127.0.0.1:{self._ask('listen')}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join(PATIENCE_SECONDS)
        self._commands.close()

    def _ask(self, command: str, *arguments: object) -> Any:
        self._commands.send((command, arguments))
        assert self._commands.poll(PATIENCE_SECONDS), "the proxy does not answer"
        return self._commands.recv()


def _obey(server_port: int, commands: Connection) -> None:
    asyncio.run(_follow(Relay(server_port), commands))


async def _follow(relay: Relay, commands: Connection) -> None:
    """Do what the test asks of the relay, until its end of the pipe is closed."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            command, arguments = await loop.run_in_executor(None, commands.recv)
        except EOFError:
            return
        done = getattr(relay, command)(*arguments)
        commands.send(await done if asyncio.iscoroutine(done) else done)
