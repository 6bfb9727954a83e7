"""Reading the rows of a chunk: one plain SELECT in the binary protocol, straight into Arrow.

The text protocol rounds FLOAT, so the statement is prepared on the socket that PyMySQL logged in.
"""

from collections.abc import Callable

import pyarrow as pa

from catchment.model.chunk import Bound, Chunk, chunk_key
from catchment.model.errors import ConnectionLost
from catchment.model.table import Column, Table
from catchment.rewind.key_chunks import having, keys_of
from catchment.source.bounds import MARK, Condition, quoted, source_name, where
from catchment.source.chosen_keys import among
from catchment.source.session import Session, mapped
from catchment.wire.packets.results import ResultDecoder
from catchment.wire.packets.statements import (
    Parameter,
    close_packet,
    execute_packet,
    parse_prepare_ok,
    prepare_packet,
)

_READ_BYTES = 1 << 20
_BATCH_BYTES = 16 << 20

OnRows = Callable[[pa.RecordBatch], None]


def select_chunk(session: Session, table: Table, chunk: Chunk) -> pa.Table:
    """The chunk's rows as a new SELECT sees them. Raises ServerSaid, ConnectionLost, SourceError.

    Only the server's own end of the result is one: whatever ends earlier is an error, never "no more rows".
    """
    batches: list[pa.RecordBatch] = []
    keys = keys_of([chunk])
    sql, parameters = (
        chunk_query(table, chunk.lo, chunk.hi) if keys is None else key_query(table, among(table, keys))
    )
    schema = stream(session, table.columns, sql, parameters, batches.append)
    rows = pa.Table.from_batches(batches, schema)
    # The server may take a key for one that is written otherwise, which may be one of another chunk.
    return rows if keys is None else rows.filter(pa.array(having(rows, keys)))


def chunk_query(table: Table, lo: Bound | None, hi: Bound | None) -> tuple[str, list[Parameter]]:
    """SELECT of all columns for `lo < key <= hi`, ordered by the key, and its parameters."""
    key = chunk_key(table)
    condition, parameters = where(key, lo, hi)
    names = ", ".join(quoted(column.name) for column in table.columns)
    order = ", ".join(quoted(column.name) for column in key.columns)
    sql = f"SELECT {names} FROM {source_name(table.id)}{condition} ORDER BY {order}"
    return sql.replace(MARK, "?"), list(parameters)


def key_query(table: Table, condition: Condition) -> tuple[str, list[Parameter]]:
    """SELECT of all columns under a condition, and its parameters."""
    text, parameters = condition
    names = ", ".join(quoted(column.name) for column in table.columns)
    sql = f"SELECT {names} FROM {source_name(table.id)} WHERE {text}"
    return sql.replace(MARK, "?"), list(parameters)


def stream(
    session: Session,
    columns: tuple[Column, ...],
    sql: str,
    parameters: list[Parameter],
    on_rows: OnRows,
) -> pa.Schema:
    """Run a SELECT of `columns` and hand its rows on in batches; the schema of the batches."""
    sock, endpoint = session.sock, session.endpoint
    with mapped(endpoint):
        sock.sendall(prepare_packet(sql))
        answer = bytearray()
        while (prepared := parse_prepare_ok(bytes(answer))) is None:
            answer += _received(session)
        sock.sendall(execute_packet(prepared.statement_id, parameters))
    decoder = ResultDecoder(columns)
    buffer = bytearray(_READ_BYTES)
    view = memoryview(buffer)
    while not decoder.ended:
        # The socket's errors are the shard's; those of `on_rows` are not.
        with mapped(endpoint):
            size = sock.recv_into(buffer)
        if size == 0:
            raise ConnectionLost(
                f"shard {endpoint.shard}: the connection closed after {decoder.rows} rows of a SELECT"
            )
        decoder.feed(view[:size])
        if decoder.pending_bytes > _BATCH_BYTES:
            on_rows(decoder.take_batch())
    last = decoder.take_batch()
    on_rows(last)
    with mapped(endpoint):
        sock.sendall(close_packet(prepared.statement_id))
    return last.schema


def _received(session: Session) -> bytes:
    data = session.sock.recv(1 << 16)
    if not data:
        raise ConnectionLost(f"shard {session.endpoint.shard}: the connection closed during a prepare")
    return data
