"""Messages of the published protobuf as events again, as a client reads them. It shares no code with the server."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from catchment.model.table import Column, ColumnType, Kind, TableId
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.stream.events import (
    Begin,
    Commit,
    CopyCompleted,
    Ddl,
    Event,
    Field,
    Gap,
    Heartbeat,
    LastPk,
    Restart,
    Row,
    VGtid,
)

_MOMENT = datetime(1970, 1, 1)


class Reading:
    """Keeps the columns of tables, as a client must."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, str, TableId], Sequence[Column]] = {}

    def events(self, batch: pb.EventBatch) -> Iterator[Event]:
        """The events of a message."""
        for event in batch.events:
            kind = event.WhichOneof("event")
            assert kind is not None
            yield from getattr(self, f"_{kind}")(getattr(event, kind))

    def _begin(self, told: pb.Begin) -> Iterator[Event]:
        yield Begin(told.keyspace, told.shard, told.gtid, told.time, told.copied)

    def _commit(self, told: pb.Commit) -> Iterator[Event]:
        yield Commit(told.keyspace, told.shard, told.gtid, told.time)

    def _field(self, told: pb.Field) -> Iterator[Event]:
        columns = tuple(Column(one.name, _type(one)) for one in told.columns)
        self._columns[told.keyspace, told.shard, _table(told.table)] = columns
        yield Field(told.keyspace, told.shard, _table(told.table), columns, tuple(told.key))

    def _rows(self, told: pb.Rows) -> Iterator[Event]:
        place = told.keyspace, told.shard, _table(told.table)
        columns = self._columns[place]
        for row in told.rows:
            before = _side(row.before.values, columns) if row.HasField("before") else None
            after = _side(row.after.values, columns) if row.HasField("after") else None
            yield Row(*place, before, after)

    def _last_pk(self, told: pb.LastPk) -> Iterator[Event]:
        key = tuple(untyped(part) for part in told.key) or None
        yield LastPk(told.keyspace, told.shard, _table(told.table), key)

    def _ddl(self, told: pb.Ddl) -> Iterator[Event]:
        added = {one.column: untyped(one.value) for one in told.added}
        renamed = {one.old: one.new for one in told.renamed}
        yield Ddl(
            told.keyspace,
            told.shard,
            _table(told.table),
            told.statement,
            added,
            tuple(told.dropped),
            renamed,
            told.emptied,
        )

    def _restart(self, told: pb.Restart) -> Iterator[Event]:
        yield Restart(told.keyspace, told.shard, _table(told.table), told.reason, told.gone)

    def _copy_completed(self, told: pb.CopyCompleted) -> Iterator[Event]:
        table = _table(told.table) if told.HasField("table") else None
        yield CopyCompleted(told.keyspace, told.shard, table)

    def _vgtid(self, told: pb.VGtid) -> Iterator[Event]:
        yield VGtid(told.text, told.time_us)

    def _heartbeat(self, told: pb.Heartbeat) -> Iterator[Event]:
        yield Heartbeat(told.time_us)

    def _gap(self, told: pb.Gap) -> Iterator[Gap]:
        yield Gap(told.since_vgtid, told.until_vgtid)


def untyped(value: pb.Value) -> Any:
    """A value as its field tells it."""
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    found = getattr(value, kind)
    match kind:
        case "date_value":
            return date(1970, 1, 1) + timedelta(days=found)
        case "datetime_value":
            return _MOMENT + timedelta(microseconds=found)
        case "timestamp_value":
            return (_MOMENT + timedelta(microseconds=found)).replace(tzinfo=UTC)
        case "decimal_value":
            return Decimal(found)
    return found


def _type(told: pb.Column) -> ColumnType:
    kind = Kind[pb.Kind.Name(told.kind).removeprefix("KIND_")]
    return ColumnType(kind, told.unsigned, told.length, told.scale, told.charset, tuple(told.labels))


def _table(told: pb.Table) -> TableId:
    return TableId(told.schema, told.name)


def _side(values: Sequence[pb.Value], columns: Sequence[Column]) -> dict[str, Any]:
    assert len(values) == len(columns)
    return {column.name: _typed(value, column.type) for column, value in zip(columns, values, strict=True)}


def _typed(value: pb.Value, column: ColumnType) -> Any:
    """As the stream of Python has it: integers of 64 bits without a sign are decimals, long decimals are texts."""
    found = untyped(value)
    if column.kind is Kind.DECIMAL and column.length > 38 and found is not None:
        return value.decimal_value
    wide = (column.kind, column.unsigned) == (Kind.BIGINT, True) or (column.kind, column.length) == (
        Kind.BIT,
        64,
    )
    return Decimal(found) if wide and found is not None else found
