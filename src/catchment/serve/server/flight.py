"""The service of Arrow Flight: DoGet gives one table of a feed, over all its shards.

pyarrow's own server takes a request of any size before it asks who sends it, has no keepalive, and waits at its end for
clients that do not read. So the messages are made here, for the server that has streams as well.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import grpc
import msgspec
import pyarrow as pa

from catchment import world
from catchment.model.epoch_number import epoch_number
from catchment.model.table import Table
from catchment.serve.flight.chunks import Chunk, chunks, fits, nothing, schema_of
from catchment.serve.flight.ticket import Ticket, ticket_of
from catchment.serve.flight.told_parts import Columns, ToldParts
from catchment.serve.hub.client import Client
from catchment.serve.hub.ends import STOPPED, end_by
from catchment.serve.hub.hub import Stays
from catchment.serve.server.admission import authorization_of
from catchment.serve.server.calls import abort
from catchment.serve.server.feeds import Feeds
from catchment.serve.server.flight_messages import chunk_message, schema_message, ticket_in
from catchment.serve.stream.events import Part

NAME: Final = "arrow.flight.protocol.FlightService"
# The last message of a stream whose table has got a column: begin again with the vgtid before it.
SCHEMA_CHANGED: Final = msgspec.json.encode({"type": "schema_changed"})


class Tables:
    """Each stream has a thread of the server's pool, until `stopping` is set."""

    def __init__(self, feeds: Feeds, stopping: world.Event) -> None:
        self._feeds = feeds
        self._stopping = stopping

    def handler(self) -> grpc.GenericRpcHandler:
        """What a server of gRPC calls, with messages as bytes."""
        do_get: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_stream_rpc_method_handler(self._do_get)
        return grpc.method_handlers_generic_handler(NAME, {"DoGet": do_get})

    def _do_get(self, message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """A table's rows, and JSON beside batches without rows: vgtid, ddl, restart, last_pk, copy_completed, gap."""
        feed = ""
        try:
            asked = ticket_of(ticket_in(message))
            feed = asked.feed
            if (yield from self._told(asked, context)):
                return
            end = STOPPED
        except Exception as fault:
            end = STOPPED if self._stopping.is_set() else end_by(fault, feed)
        abort(context, end)

    def _told(self, asked: Ticket, context: grpc.ServicerContext) -> Generator[bytes, None, bool]:
        """Whether the stream has come to an end of its own, and not to that of the server."""

        def stays() -> bool:
            return context.is_active() and not self._stopping.is_set()

        hub = self._feeds.served(asked.feed, authorization_of(context.invocation_metadata())).hub
        client = hub.open(asked.ask, ToldParts, f"flight {context.peer()}", stays)
        try:
            reading = _Reading(asked, client, stays)
            yield schema_message(reading.schema)
            yield from map(chunk_message, reading.chunks())
        finally:
            hub.close(client)
        return reading.ended


class _Reading:
    """A client's turns, as chunks of one schema. `ended`: a turn did not fit it.

    The schema includes the columns of the first turn with rows, if one was written before the client came. So a client
    that resumes in front of a turn that did not fit begins with that turn's columns.
    """

    def __init__(self, ticket: Ticket, client: Client[Part | Columns], stays: Stays) -> None:
        self.ended = False
        self._client = client
        self._stays = stays
        tables, self._begun = self._beginning()
        known = client.definitions.of(ticket.table_id)
        self.schema: pa.Schema = schema_of([*known, *tables])

    def chunks(self) -> Iterator[Chunk]:
        """Until the client leaves, or a turn does not fit the schema."""
        told = self._begun
        while self._stays():
            for part in told:
                if not isinstance(part, Columns):
                    yield from chunks(self.schema, part)
                elif not fits(self.schema, part.tables):
                    self.ended = True
                    yield Chunk(nothing(self.schema), SCHEMA_CHANGED)
                    return
            told = self._client.pull()

    def _beginning(self) -> tuple[Sequence[Table], Iterable[Part | Columns]]:
        """The tables of the first turn with rows, and all parts up to that turn and of it; no tables where the logs end
        before such a turn."""
        now_seconds = world.now_us() // 1_000_000
        asked_later = epoch_number(now_seconds + 1)
        held: list[Part | Columns] = []
        while self._stays() and self._client.tick < asked_later:
            told = self._client.pull()
            for part in told:
                if isinstance(part, Columns):
                    return part.tables, chain(held, [part], told)
                held.append(part)
        return (), held
