"""The server of Arrow Flight: DoGet gives one table of a feed, over all its shards."""

import logging
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec
import pyarrow as pa
from pyarrow import flight

from catchment.model.errors import CatchmentError, ConfigError, ConnectionLost, Denied, TooManyClients
from catchment.serve.flight.chunks import Chunk, chunks, fits, nothing, schema_of
from catchment.serve.flight.ticket import Ticket, ticket_of
from catchment.serve.flight.told_parts import ToldParts
from catchment.serve.hub.client import Client
from catchment.serve.hub.hub import Hub
from catchment.serve.stream.events import Part

_TOKEN: Final = "token"
_HEADER: Final = "authorization"
# The last message of a stream whose table has got a column: begin again with the vgtid before it.
SCHEMA_CHANGED: Final = msgspec.json.encode({"type": "schema_changed"})

_ERRORS: Final = (
    (Denied, flight.FlightUnauthenticatedError),
    ((ConnectionLost, TooManyClients), flight.FlightUnavailableError),
    (ConfigError, pa.ArrowInvalid),
    (CatchmentError, flight.FlightServerError),
)

_log = logging.getLogger(__name__)


class Doors(Protocol):
    """Who may read which feed."""

    def hub(self, feed: str, authorization: str) -> Hub:
        """The clients of a feed. Raises Denied for a token that is not one of its own, and for a feed that is none."""
        ...


class _Authorization(flight.ServerMiddleware):  # type: ignore[misc]
    def __init__(self, text: str) -> None:
        self.text = text


class _Authorizations(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    def start_call(self, info: Any, headers: Mapping[str, Any]) -> _Authorization:
        """Keep what the client says of itself."""
        given = next((values for name, values in headers.items() if name.lower() == _HEADER), [""])
        return _Authorization(str(given[0]))


class FlightService(flight.FlightServerBase):  # type: ignore[misc]
    """Listens once it is made. `certificates`: pairs of certificate and key as PEM; without any it speaks in clear."""

    def __init__(self, location: str, doors: Doors, certificates: list[tuple[bytes, bytes]]) -> None:
        super().__init__(
            location,
            tls_certificates=certificates or None,
            middleware={_TOKEN: _Authorizations()},
        )
        self._doors = doors

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """A table's rows, and JSON beside batches without rows: vgtid, ddl, restart, last_pk, copy_completed, gap."""
        try:
            asked = ticket_of(ticket.ticket)
            hub = self._doors.hub(asked.feed, context.get_middleware(_TOKEN).text)
            client = hub.open(asked.ask, ToldParts)
            try:
                reading = _Reading(asked, client)
                return flight.GeneratorStream(reading.schema, reading.chunks(context, hub))
            except BaseException:
                hub.close(client)
                raise
        except Exception as error:
            raise _told(error) from None


class _Reading:
    """A client's turns, as chunks of one schema."""

    def __init__(self, ticket: Ticket, client: Client[Part]) -> None:
        self._client = client
        known = client.definitions(ticket.table_id)
        self._first = list(client.pull())
        self.schema: pa.Schema = schema_of(known, self._first)

    def chunks(self, context: flight.ServerCallContext, hub: Hub) -> Iterator[Chunk]:
        """Until the client leaves, or a turn does not fit the schema."""
        try:
            yield from self._chunks(context)
        except Exception as error:
            raise _told(error) from None
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


def _told(error: Exception) -> Exception:
    """As Flight says it; what another library says may hold a secret and stays in our log."""
    kind = next((kind for ours, kind in _ERRORS if isinstance(error, ours)), None)
    if kind is not None:
        said: Exception = kind(str(error))
        return said
    _log.exception("a stream failed", exc_info=error)
    hidden: Exception = flight.FlightInternalError("this failed; the server's log says why")
    return hidden
