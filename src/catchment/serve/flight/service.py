"""The server of Arrow Flight: DoGet gives one table of a feed, over all its shards."""

from collections.abc import Generator, Iterator, Mapping
from itertools import chain
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa
from pyarrow import flight

from catchment.model.errors import Denied
from catchment.serve.flight.chunks import Chunk, chunks, fits, nothing, schema_of
from catchment.serve.flight.ticket import Ticket, ticket_of
from catchment.serve.flight.told_parts import ToldParts
from catchment.serve.hub.client import Client
from catchment.serve.hub.ends import Why, end_by
from catchment.serve.hub.hub import Hub
from catchment.serve.stream.events import Part

_TOKEN: Final = "token"
_HEADER: Final = "authorization"
# The last message of a stream whose table has got a column: begin again with the vgtid before it.
SCHEMA_CHANGED: Final = msgspec.json.encode({"type": "schema_changed"})

_ERRORS: Final = {
    Why.DENIED: flight.FlightUnauthenticatedError,
    Why.REFUSED: pa.ArrowInvalid,
    Why.UNUSABLE: flight.FlightServerError,
    Why.PURGED: flight.FlightServerError,
    Why.DIVERGED: flight.FlightServerError,
    Why.TOO_MANY: flight.FlightUnavailableError,
    Why.OVERTAKEN: flight.FlightServerError,
    Why.TAKEN_OVER: flight.FlightServerError,
    Why.AWAY: flight.FlightUnavailableError,
    Why.FAULT: flight.FlightInternalError,
}


class Doors(Protocol):
    """Who may read which feed."""

    def admit(self, authorization: str) -> None:
        """Raise Denied unless some feed is open to this header of a call."""
        ...

    def hub(self, feed: str, authorization: str) -> Hub:
        """The clients of a feed. Raises Denied for a token that is not one of its own, and for a feed that is none."""
        ...


class _Authorization(flight.ServerMiddleware):  # type: ignore[misc]
    def __init__(self, text: str) -> None:
        self.text = text


class _Authorizations(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Comes before every method, and before anything of a request is decoded."""

    def __init__(self, doors: Doors) -> None:
        super().__init__()
        self._doors = doors

    def start_call(self, info: Any, headers: Mapping[str, Any]) -> _Authorization:
        """Keep the client's token. Raises FlightUnauthenticatedError for one that opens no feed."""
        given = next((values for name, values in headers.items() if name.lower() == _HEADER), [""])
        text = str(given[0])
        try:
            self._doors.admit(text)
        except Denied as error:
            raise _told(error, "") from None
        return _Authorization(text)


class FlightService(flight.FlightServerBase):  # type: ignore[misc]
    """Listens once it is made. `certificates`: pairs of certificate and key as PEM; without any it speaks in clear."""

    def __init__(self, location: str, doors: Doors, certificates: list[tuple[bytes, bytes]]) -> None:
        super().__init__(
            location,
            tls_certificates=certificates or None,
            middleware={_TOKEN: _Authorizations(doors)},
        )
        self._doors = doors

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """A table's rows, and JSON beside batches without rows: vgtid, ddl, restart, last_pk, copy_completed, gap."""
        feed = ""
        try:
            asked = ticket_of(ticket.ticket)
            feed = asked.feed
            hub = self._doors.hub(asked.feed, context.get_middleware(_TOKEN).text)
            client = hub.open(
                asked.ask, ToldParts, f"flight {context.peer()}", lambda: not context.is_cancelled()
            )
            try:
                reading = _Reading(asked, client)
            except BaseException:
                hub.close(client)
                raise
        except Exception as error:
            raise _told(error, feed) from None
        told = reading.chunks(context, hub)
        # A generator that was never begun would not give the client's reader back.
        first = next(told, Chunk(nothing(reading.schema), b""))
        return flight.GeneratorStream(reading.schema, chain([first], told))


class _Reading:
    """A client's turns, as chunks of one schema."""

    def __init__(self, ticket: Ticket, client: Client[Part]) -> None:
        self._client = client
        self._feed = ticket.feed
        known = client.definitions.of(ticket.table_id)
        self._first = list(client.pull())
        self.schema: pa.Schema = schema_of(known, self._first)

    def chunks(self, context: flight.ServerCallContext, hub: Hub) -> Iterator[Chunk]:
        """Until the client leaves, or a turn does not fit the schema."""
        try:
            yield from self._chunks(context)
        except Exception as error:
            raise _told(error, self._feed) from None
        finally:
            hub.close(self._client)

    def _chunks(self, context: flight.ServerCallContext) -> Generator[Chunk, None, None]:
        told = self._first
        while not context.is_cancelled():
            if not fits(self.schema, told):
                yield Chunk(nothing(self.schema), SCHEMA_CHANGED)
                return
            yield from chunks(self.schema, told)
            told = list(self._client.pull())


def _told(error: Exception, feed: str) -> Exception:
    """As Flight says it."""
    end = end_by(error, feed)
    said: Exception = _ERRORS[end.why](end.text)
    return said
