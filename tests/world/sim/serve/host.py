"""A server of streams as a simulated process: the product's service, hub and subscribers. It ends in order, or dies."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import grpc

from catchment import world
from catchment.config import CopyConfig
from catchment.serve.hub.hub import Hub, Limits
from catchment.serve.hub.subscribers import Subscribers
from catchment.serve.server.admission import Lock
from catchment.serve.server.feeds import Feeds, Served
from catchment.serve.server.service import NAME, Streams
from catchment.serve.stream.source import Source
from catchment.state.store import Store
from catchment.world.port import Event
from tests.world.sim.scheduler import Process, SimWorld
from tests.world.sim.serve.call import Aborted, Call, End

FEED, TOKEN = "shop", "a-token"
TABLES = ("shop.*",)
_METADATA = (("authorization", f"Bearer {TOKEN}"),)
# As serve/server/server.py has them.
_SPARE, _STOP_SECONDS = 8, 5.0


@dataclass(frozen=True)
class Setting:
    """What a server's file says."""

    limits: Limits
    copy: CopyConfig
    unacknowledged: int
    state: str


class Host:
    """`number`: which of those that share a state store. `runs`: how often it was started."""

    def __init__(self, world: SimWorld, number: int, source: Source, setting: Setting) -> None:
        self.world = world
        self.number = number
        self.source = source
        self.setting = setting
        self.runs = 0
        self.calls: list[Call] = []
        self.process: Process | None = None
        self.hub: Hub | None = None
        self.faults: list[BaseException] = []
        self._stopping: Event | None = None
        self._feeds: Feeds | None = None
        self._handlers: Mapping[str, Any] = {}
        self._stops = False

    @property
    def up(self) -> bool:
        """Whether it takes calls."""
        return self.process is not None and not self.process.dead and bool(self._handlers) and not self._stops

    @property
    def dead(self) -> bool:
        """Whether it has to be started."""
        return self.process is None or self.process.dead

    def start(self) -> None:
        """Begin a process."""
        self._handlers, self._stops, self.calls = {}, False, []
        self.process = Process(f"serve {self.number}.{self.runs}")
        self.runs += 1
        self.world.spawn(self.process, "main", self._listen).watched = True

    def _listen(self) -> None:
        setting = self.setting
        self.hub = hub = Hub(self.source, setting.copy, setting.limits, TABLES)
        store = Store.open(setting.state, FEED)
        kept = Subscribers(hub, self.source, store, setting.unacknowledged)
        self._feeds = Feeds({FEED: Served(Lock.of([TOKEN]), hub, kept)})
        self._stopping = world.event()
        service = Streams(self._feeds, self._stopping).handler()
        self._handlers = {
            method: service.service(SimpleNamespace(method=f"/{NAME}/{method}"))
            for method in ("Stream", "Acknowledge")
        }

    def call(self, method: str, request: Any, name: str, capacity: int) -> Call | None:
        """A call; None where nobody listens."""
        if not self.up:
            return None
        assert self.process is not None
        call = Call(self.world, self.process, name, _METADATA, capacity, self.world.now)
        running = [one for one in self.calls if not one.over]
        if len(running) >= self.setting.limits.clients + _SPARE:
            call.over, call.said = (
                True,
                End(grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!"),
            )
            return call
        self.calls = [*running, call]
        serve = self._stream if method == "Stream" else self._answer
        job = self.world.spawn(self.process, "handler", lambda: self._handle(call, serve, method, request))
        job.watched = True
        return call

    def _handle(self, call: Call, serve: Any, method: str, request: Any) -> None:
        try:
            serve(call, self._handlers[method], request)
        except Aborted:
            pass
        except Exception as fault:  # a fault of the program, or of the simulator
            self.faults.append(fault)
            raise
        finally:
            call.over = True

    def _stream(self, call: Call, handler: Any, request: Any) -> None:
        messages = handler.unary_stream(request, call)
        try:
            for message in messages:
                self.world.step("hand over a message")
                if not call.put(handler.response_serializer(message)):
                    break
        finally:
            messages.close()

    def _answer(self, call: Call, handler: Any, request: Any) -> None:
        call.answer = handler.unary_unary(request, call)

    def stop(self) -> None:
        """As SIGTERM does: streams end, and then the process."""
        if not self.up:
            return
        assert self.process is not None
        self._stops = True
        process = self.process
        self.world.spawn(process, "stop", lambda: self._stop(process)).watched = True

    def _stop(self, process: Process) -> None:
        assert self._stopping is not None
        assert self._feeds is not None
        self._stopping.set()
        self.world.wait(lambda: all(call.over for call in self.calls), _STOP_SECONDS)
        for call in self.calls:
            call.active = False
        self._feeds.stop()
        self.world.wait(lambda: all(call.over for call in self.calls), None)
        self.world.kill(process)
