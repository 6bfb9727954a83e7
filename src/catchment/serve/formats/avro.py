"""Turns of a stream as an Avro object container file, block by block.

A file has one schema, and that stands in front of its first row. So it is written as late as that, with all tables that
are known by then. Rows for which it has no place need another file.
"""

import io
from collections.abc import Callable, Iterator, Sequence

import msgspec
from fastavro.write import Writer

from catchment.model.table import Table, TableId
from catchment.serve.formats.avro_rows import AvroColumns, AvroRows
from catchment.serve.formats.avro_schema import Records, Version
from catchment.serve.formats.envelopes import Envelope, Messages
from catchment.serve.stream.events import Field, Row, Values, VGtid
from catchment.serve.stream.events_of import RowTeller
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.vgtid import written

# Blocks have these many bytes; less where a turn ends.
_BLOCK_BYTES = 1 << 16
# The key of the header under which the vgtid stands behind which the file begins.
SINCE = "catchment.vgtid"


class AvroFile:
    """`tables`: of which rows may come. `now_ms` gives the time of the envelopes, in milliseconds since 1970."""

    def __init__(self, tables: Sequence[Table], now_ms: Callable[[], int]) -> None:
        self._tables = tables
        self._records = Records.of(tables)
        self._teller: RowTeller[Row] = RowTeller(AvroRows())
        self._messages = Messages(now_ms, AvroColumns())
        self._names: dict[str, str] = {}
        self._since = ""
        self._out = io.BytesIO()
        self._writer: Writer | None = None

    def lacking(self, turn: Turn) -> list[TableId]:
        """The tables that have rows in a turn for which the file has no place."""
        return [] if self._writer is None else self._records.lacking(turn.tables)

    def blocks(self, turn: Turn) -> Iterator[bytes]:
        """What the file has of a turn, in whole blocks. The last row has its vgtid."""
        if self._writer is None:
            self._records = Records.of([*self._tables, *turn.tables])
        self._since = self._since or written(turn.stands)
        vgtid, last = "", None
        for event in self._teller.events(turn):
            if isinstance(event, Field):
                version = Version.of(Table(event.table, event.columns, event.key))
                self._names[f"{event.keyspace}.{event.shard}.{event.table}"] = self._records.name_of(version)
            elif isinstance(event, VGtid):
                vgtid = event.text
            for message in self._messages.of(event):
                if last is not None:
                    yield from self._put(last, None)
                if message.value is not None:
                    last = self._record(message.topic, message.value)
        if last is not None:
            yield from self._put(last, vgtid)
        if self._writer is None:
            self._since = vgtid
            return
        self._writer.flush()
        yield from self._taken()

    def end(self) -> Iterator[bytes]:
        """What a file has that ends without any row."""
        if self._writer is None:
            self._writer = self._begun()
            yield from self._taken()

    def _begun(self) -> Writer:
        schema = self._records.schema()
        return Writer(self._out, schema, sync_interval=_BLOCK_BYTES, metadata={SINCE: self._since})

    def _record(self, topic: str, envelope: Envelope) -> Values:
        sides = {side: values and (self._names[topic], values) for side, values in _sides(envelope)}
        rest = {"source": msgspec.structs.asdict(envelope.source), "op": envelope.op, "ts_ms": envelope.ts_ms}
        return {**sides, **rest, "transaction": None}

    def _put(self, record: Values, vgtid: str | None) -> Iterator[bytes]:
        if self._writer is None:
            self._writer = self._begun()
        record["vgtid"] = vgtid
        self._writer.write(record)
        if self._out.tell():
            yield from self._taken()

    def _taken(self) -> Iterator[bytes]:
        """What the writer has let go: it does so by blocks."""
        blocks = self._out.getvalue()
        self._out.seek(0)
        self._out.truncate()
        if blocks:
            yield blocks


def _sides(envelope: Envelope) -> Iterator[tuple[str, Values | None]]:
    yield "before", envelope.before
    yield "after", envelope.after
