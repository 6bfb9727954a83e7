"""The network between a server of streams and its clients, as gRPC keeps it: calls that can be broken off, and messages
that wait until they are taken.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc

from catchment.serve.server.calls import REASON
from tests.world.sim.scheduler import Process, SimWorld


class Aborted(Exception):
    """The handler of a call has ended it with a status."""


@dataclass(frozen=True)
class End:
    """How a call ended, as its client sees it."""

    code: grpc.StatusCode
    text: str
    reason: str = ""


LOST = End(grpc.StatusCode.UNAVAILABLE, "the server is gone")


@dataclass(frozen=True)
class Message:
    """`made_at`: when the server made it."""

    data: bytes
    made_at: float


class Call:
    """One call. The handler sees it as a `grpc.ServicerContext`, in `process`; `capacity`: messages that lie between
    both until the client takes one.
    """

    def __init__(
        self, world: SimWorld, process: Process, name: str, metadata: Any, capacity: int, asked_at: float
    ) -> None:
        self.world = world
        self.process = process
        self.name = name
        self.capacity = capacity
        self.asked_at = asked_at
        self.active = True
        self.over = False
        self.left_at: float | None = None
        self.said: End | None = None
        self.answer: Any = None
        self._metadata = metadata
        self._reason = ""
        self._waiting: deque[Message] = deque()

    # As a handler sees it.

    def is_active(self) -> bool:
        """Whether the client is still there, as far as the server knows."""
        return self.active

    def set_trailing_metadata(self, metadata: Sequence[tuple[str, str]]) -> None:
        """What comes beside the status."""
        self._reason = dict(metadata).get(REASON, "")

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        """End it."""
        self.said = End(code, details, self._reason)
        raise Aborted(details)

    def peer(self) -> str:
        """Who called."""
        return self.name

    def invocation_metadata(self) -> Any:
        """With the token."""
        return self._metadata

    def put(self, data: bytes) -> bool:
        """Send a message once there is room for it; False where the client is gone."""
        made_at = self.world.now
        self.world.wait(lambda: not self.active or len(self._waiting) < self.capacity, None)
        if self.active:
            self._waiting.append(Message(data, made_at))
        return self.active

    # As a client sees it.

    @property
    def end(self) -> End | None:
        """How it ended; None while it goes on."""
        if self._waiting:
            return None
        if self.over and self.said is not None:
            return self.said
        return LOST if self.process.dead else None

    def take(self, seconds: float) -> Message | None:
        """The next message; None where none comes for so long, and at the end."""
        self.world.wait(lambda: self._waiting or self.end is not None, seconds)
        return self._waiting.popleft() if self._waiting else None

    def leave(self, noticed_after: float, outside: Process) -> None:
        """The client is gone, which the server notices some seconds later. May be called by who has died."""
        self._waiting.clear()

        def noticed() -> None:
            self.world.sleep(noticed_after)
            self._gone()

        if noticed_after and not self.over:
            self.world.spawn(outside, "connection", noticed)
        else:
            self._gone()

    def _gone(self) -> None:
        if self.active:
            self.active, self.left_at = False, self.world.now
