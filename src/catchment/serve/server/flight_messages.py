"""The messages of Arrow Flight, as protobuf has them: Ticket and FlightData (Arrow: Flight RPC, Protocol Buffer
Definitions).

FlightData has the parts of a message of Arrow's IPC format: its metadata, and its body as it lies in memory.
"""

import pyarrow as pa
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import BytesValue

from catchment.model.errors import ConfigError
from catchment.serve.flight.chunks import Chunk
from catchment.serve.server.varints import varint

# Fields with a length: data_header (2), app_metadata (3) and data_body (1000).
_HEADER, _METADATA, _BODY = b"\x12", b"\x1a", b"\xc2\x3e"


def ticket_in(message: bytes) -> bytes:
    """What a serialized Ticket holds. Raises ConfigError."""
    try:
        # It has one field of bytes, number 1, as Ticket has.
        return BytesValue.FromString(message).value
    except DecodeError:
        raise ConfigError("ticket: the request is no Ticket of Arrow Flight") from None


def schema_message(schema: pa.Schema) -> bytes:
    """The first FlightData of a stream."""
    return _message(schema.serialize(), b"")


def chunk_message(chunk: Chunk) -> bytes:
    """The FlightData of a chunk."""
    return _message(chunk.rows.serialize(), chunk.metadata)


def _message(serialized: pa.Buffer, metadata: bytes) -> bytes:
    message = pa.ipc.read_message(serialized)
    body = message.body or b""
    parts = [_HEADER, varint(message.metadata.size), message.metadata]
    if metadata:
        parts += [_METADATA, varint(len(metadata)), metadata]
    return b"".join([*parts, _BODY, varint(len(body)), body])
