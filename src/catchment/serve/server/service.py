"""The service Streams: admits clients, pulls their messages as fast as they read, and ends their streams clearly."""

import logging
from collections.abc import Iterator, Mapping

import grpc

from catchment import world
from catchment.model.errors import TooLarge
from catchment.serve.server.admission import Door, admitted
from catchment.serve.server.answers import Answer, answer_to
from catchment.serve.server.asks import ask_of, message_bytes_of
from catchment.serve.server.feeds import Served
from catchment.serve.server.stream_pb2 import StreamRequest
from catchment.serve.server.telling import Message, ProtoTelling

NAME = "catchment.stream.v1.Streams"
_STOPPED = Answer(
    grpc.StatusCode.UNAVAILABLE, "this server stops; go on with the last vgtid, at another one or later"
)

_log = logging.getLogger(__name__)


class Streams:
    """`doors`: the feeds, by their names. Each stream has a thread of the server's pool."""

    def __init__(self, doors: Mapping[str, Door[Served]]) -> None:
        self._doors = doors
        self._stopping = world.event()

    @property
    def clients(self) -> int:
        """How many have a stream now."""
        return sum(len(door.behind.hub.standings()) for door in self._doors.values())

    def stop(self) -> None:
        """End all streams, each within a second if its client reads."""
        self._stopping.set()

    def handler(self) -> grpc.GenericRpcHandler:
        """What a server of gRPC calls. Messages are serialized already."""
        stream: grpc.RpcMethodHandler[StreamRequest, Message] = grpc.unary_stream_rpc_method_handler(
            self._stream, StreamRequest.FromString, lambda message: message.data
        )
        return grpc.method_handlers_generic_handler(NAME, {"Stream": stream})

    def _stream(self, request: StreamRequest, context: grpc.ServicerContext) -> Iterator[Message]:
        try:
            yield from self._told(request, context)
            answer = _STOPPED
        except Exception as fault:
            # While it stops, what its readers say of their end is no news.
            answer = _STOPPED if self._stopping.is_set() else answer_to(fault)
            if answer.number:
                _log.error("%s: stream of %s", answer.number, request.feed[:64], exc_info=fault)
        context.abort(answer.code, answer.text)

    def _told(self, request: StreamRequest, context: grpc.ServicerContext) -> Iterator[Message]:
        served = admitted(self._doors, request.feed, context.invocation_metadata())
        ask, most = ask_of(request, served.tables), message_bytes_of(request)
        client = served.hub.open(ask, ProtoTelling)
        try:
            while context.is_active() and not self._stopping.is_set():
                for message in client.pull():
                    _must_fit(message, most)
                    yield message
        finally:
            served.hub.close(client)


def _must_fit(message: Message, most: int) -> None:
    if len(message.data) > most:
        raise TooLarge(
            f"{message.holds or 'a message'} takes {len(message.data):,} bytes, and the client takes {most:,}: raise "
            "the limit of its channel, and message_bytes_max of its request with it"
        )
