"""Schemas of Delta tables as their logs have them."""

from collections.abc import Iterable

import pyarrow as pa
from deltalake import Schema

from catchment.sink.delta.log.actions import Protocol, protocol


def schema_text(schema: pa.Schema) -> str:
    """A schema as Delta's log has it."""
    text: str = Schema.from_arrow(schema).to_json()
    return text


def arrow_of(text: str) -> pa.Schema:
    """A schema of Delta's log."""
    return pa.schema(Schema.from_json(text).to_arrow())


def protocol_of(schema: pa.Schema, reader: Iterable[str] = (), writer: Iterable[str] = ()) -> Protocol:
    """What readers and writers of a table must know: what the schema asks for, and these features of both, and of
    writers alone. A time without a zone is a feature of its own."""
    without_zone = any(pa.types.is_timestamp(f.type) and f.type.tz is None for f in schema)
    read = [*reader, *(["timestampNtz"] if without_zone else [])]
    return protocol(read, [*read, "appendOnly", "invariants", *writer])
