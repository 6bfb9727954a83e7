"""Answers of a real server to prepared statements, as bytes."""

import socket
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
from pymysql.connections import Connection

from catchment.model.table import Column
from catchment.wire.cells.types import from_catalog
from catchment.wire.packets.results import ResultDecoder
from catchment.wire.packets.statements import (
    Parameter,
    PreparedStatement,
    close_packet,
    execute_packet,
    parse_prepare_ok,
    prepare_packet,
)

Session: TypeAlias = "Connection[Any]"


def socket_of(session: Session) -> socket.socket:
    found = session._sock  # type: ignore[attr-defined]
    assert isinstance(found, socket.socket)
    return found


def prepare(session: Session, sql: str) -> PreparedStatement:
    return _prepared(session, sql)[0]


def prepared_answer(session: Session, sql: str) -> bytes:
    """What the server sends for PREPARE."""
    found, data = _prepared(session, sql)
    socket_of(session).sendall(close_packet(found.statement_id))
    return data


def _prepared(session: Session, sql: str) -> tuple[PreparedStatement, bytes]:
    sock = socket_of(session)
    sock.sendall(prepare_packet(sql))
    data = b""
    while True:
        found = parse_prepare_ok(data)
        if found is not None:
            assert found.size == len(data)
            return found, data
        data += sock.recv(65536)


def select(
    session: Session, sql: str, columns: Sequence[Column], parameters: Sequence[Parameter] = ()
) -> tuple[ResultDecoder, bytes]:
    """Run a SELECT through a decoder; also returns the bytes that the server sent."""
    decoder = ResultDecoder(columns)
    return decoder, select_into(decoder, session, sql, parameters)


def select_into(
    decoder: ResultDecoder, session: Session, sql: str, parameters: Sequence[Parameter] = ()
) -> bytes:
    """Run a SELECT through the decoder given."""
    sock = socket_of(session)
    statement = prepare(session, sql)
    sock.sendall(execute_packet(statement.statement_id, parameters))
    received = []
    while not decoder.ended:
        received.append(sock.recv(65536))
        assert received[-1], "the server closed the connection"
        decoder.feed(received[-1])
    sock.sendall(close_packet(statement.statement_id))
    return b"".join(received)


def perform(session: Session, sql: str, parameters: Sequence[Parameter]) -> None:
    """Run a statement that gives no rows."""
    sock = socket_of(session)
    statement = prepare(session, sql)
    sock.sendall(execute_packet(statement.statement_id, parameters))
    answer = sock.recv(65536)
    assert answer[4] == 0, answer
    sock.sendall(close_packet(statement.statement_id))


def run(session: Session, *statements: str) -> list[tuple[Any, ...]]:
    with session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def columns_of(session: Session, schema: str, table: str) -> tuple[Column, ...]:
    with session.cursor() as cursor:
        cursor.execute(
            "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
            (schema, table),
        )
        return tuple(Column(name, from_catalog(*rest)) for name, *rest in cursor.fetchall())


def decode(columns: Sequence[Column], pieces: Sequence[bytes]) -> pa.RecordBatch:
    """Rows of an answer in pieces, which must be whole."""
    decoder = ResultDecoder(columns)
    for piece in pieces:
        decoder.feed(piece)
    assert decoder.ended
    return decoder.take_batch()
