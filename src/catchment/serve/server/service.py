"""The service Streams: pulls the messages of clients as fast as they read, and ends their streams clearly."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import grpc

from catchment import world
from catchment.model.errors import TooLarge
from catchment.serve.hub.ends import STOPPED, End, end_by
from catchment.serve.hub.subscribers import Subscribers
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.server.admission import authorization_of
from catchment.serve.server.asks import ask_of, message_bytes_of
from catchment.serve.server.calls import abort
from catchment.serve.server.feeds import Feeds, Served
from catchment.serve.server.telling import Message, ProtoTelling

NAME: Final = "catchment.stream.v1.Streams"


class Streams:
    """Each stream has a thread of the server's pool, until `stopping` is set: then it ends within a second if its
    client reads."""

    def __init__(self, feeds: Feeds, stopping: world.Event) -> None:
        self._feeds = feeds
        self._stopping = stopping

    def handler(self) -> grpc.GenericRpcHandler:
        """What a server of gRPC calls. Messages of streams are serialized already."""
        stream: grpc.RpcMethodHandler[pb.StreamRequest, Message] = grpc.unary_stream_rpc_method_handler(
            self._stream, pb.StreamRequest.FromString, lambda message: message.data
        )
        calls: dict[str, tuple[Any, Callable[[Subscribers, Any], Any]]] = {
            "Acknowledge": (pb.AcknowledgeRequest, _acknowledge),
            "ListSubscribers": (pb.ListSubscribersRequest, _listed),
            "RemoveSubscriber": (pb.RemoveSubscriberRequest, _remove),
        }
        about = {name: self._about_subscribers(asked, act) for name, (asked, act) in calls.items()}
        return grpc.method_handlers_generic_handler(NAME, {"Stream": stream, **about})

    def _stream(self, request: pb.StreamRequest, context: grpc.ServicerContext) -> Iterator[Message]:
        try:
            yield from self._told(request, context)
            end = STOPPED
        except Exception as fault:
            end = self._end_by(fault, request)
        abort(context, end)

    def _told(self, request: pb.StreamRequest, context: grpc.ServicerContext) -> Iterator[Message]:
        served = self._admitted(request, context)
        ask, most = ask_of(request), message_bytes_of(request)

        def stays() -> bool:
            return context.is_active() and not self._stopping.is_set()

        with served.following(ask, request.subscriber, ProtoTelling, context.peer(), stays) as pull:
            while stays():
                for message in pull():
                    _must_fit(message, most)
                    yield message

    def _about_subscribers(
        self, request: Any, act: Callable[[Subscribers, Any], Any]
    ) -> "grpc.RpcMethodHandler[Any, Any]":
        def answered(asked: Any, context: grpc.ServicerContext) -> Any:
            try:
                return act(self._admitted(asked, context).subscribers, asked)
            except Exception as fault:
                end = self._end_by(fault, asked)
                abort(context, end)

        return grpc.unary_unary_rpc_method_handler(
            answered, request.FromString, lambda given: given.SerializeToString()
        )

    def _admitted(self, request: Any, context: grpc.ServicerContext) -> Served:
        return self._feeds.served(request.feed, authorization_of(context.invocation_metadata()))

    def _end_by(self, fault: Exception, request: Any) -> End:
        """While it stops, what its readers say of their end is no news."""
        return STOPPED if self._stopping.is_set() else end_by(fault, request.feed)


def _acknowledge(subscribers: Subscribers, asked: pb.AcknowledgeRequest) -> pb.AcknowledgeResponse:
    return pb.AcknowledgeResponse(advanced=subscribers.acknowledge(asked.subscriber, asked.vgtid))


def _listed(subscribers: Subscribers, asked: pb.ListSubscribersRequest) -> pb.ListSubscribersResponse:
    found = [
        pb.Subscriber(
            name=one.name, vgtid=one.vgtid, acknowledged_us=one.acknowledged_us, generation=one.generation
        )
        for one in subscribers.listed()
    ]
    return pb.ListSubscribersResponse(subscribers=found)


def _remove(subscribers: Subscribers, asked: pb.RemoveSubscriberRequest) -> pb.RemoveSubscriberResponse:
    return pb.RemoveSubscriberResponse(removed=subscribers.remove(asked.subscriber))


def _must_fit(message: Message, most: int) -> None:
    if len(message.data) > most:
        raise TooLarge(
            f"{message.holds or 'a message'} takes {len(message.data):,} bytes, and the client takes {most:,}: raise "
            "the limit of its channel, and message_bytes_max of its request with it"
        )
