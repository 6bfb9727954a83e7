"""Rows per second of CPU when a result set becomes Arrow, beside PyMySQL's streaming cursor.

CPU time of the client process only; the server runs beside it. Run: `python bench/decode_result.py`.
"""

import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

import pymysql
from pymysql.connections import Connection

from catchment.demo.server import PrivateServer
from catchment.model.table import Column, ColumnType, Kind
from catchment.wire.packets.results import ResultDecoder
from catchment.wire.packets.statements import execute_packet, parse_prepare_ok, prepare_packet

SCHEMA = "bench_decode_result"
SQL = f"SELECT id, sig, c FROM {SCHEMA}.stress_test_pk"
TEXT = ColumnType(Kind.TEXT, charset="utf8mb4")
COLUMNS = (Column("id", ColumnType(Kind.BIGINT)), Column("sig", TEXT), Column("c", TEXT))
PIECE = 1 << 18
BATCH_BYTES = 16 << 20


def run(rows: int = 1_000_000, runs: int = 5) -> list[dict[str, Any]]:
    """Medians of `runs` runs (one run of the reference) over `rows` rows of 64 bytes on the wire."""
    with PrivateServer() as server:
        fill(server, rows)
        with server.connect() as session:
            answer = record(session)
            fetched = [rows_per_second(rows, lambda: fetch(session)) for _ in range(runs)]
        decoded = [rows_per_second(rows, lambda: decode(answer)) for _ in range(runs)]
        reference = rows_per_second(rows, lambda: fetch_with_pymysql(server))
    return [
        entry("result set, decode recorded bytes", decoded, reference),
        entry("result set, fetch and decode", fetched, reference),
    ]


def entry(name: str, values: list[float], reference: float) -> dict[str, Any]:
    value = statistics.median(values)
    return {
        "name": name,
        "value": round(value),
        "unit": "rows/s of CPU",
        "reference": "PyMySQL SSCursor, fetch",
        "reference_value": round(reference),
        "ratio": round(value / reference, 1),
        "runs": len(values),
    }


def fill(server: PrivateServer, rows: int) -> None:
    server.sql(
        f"CREATE DATABASE {SCHEMA}",
        f"CREATE TABLE {SCHEMA}.stress_test_pk (id bigint PRIMARY KEY, sig varchar(40), c char(8))",
        f"INSERT INTO {SCHEMA}.stress_test_pk"
        f" SELECT seq, SHA1(seq), LEFT(MD5(seq), 8) FROM {SCHEMA}.seq_1_to_{rows}",
    )


def rows_per_second(rows: int, work: Callable[[], int]) -> float:
    start = time.process_time()
    found = work()
    spent = time.process_time() - start
    assert found == rows, f"{found} rows instead of {rows}"
    return rows / spent


def execute(session: "Connection[Any]") -> socket.socket:
    sock: socket.socket = session._sock  # type: ignore[attr-defined]
    sock.sendall(prepare_packet(SQL))
    reply = b""
    while (prepared := parse_prepare_ok(reply)) is None:
        reply += sock.recv(PIECE)
    sock.sendall(execute_packet(prepared.statement_id))
    return sock


def record(session: "Connection[Any]") -> list[bytes]:
    """The server's answer in pieces as they came."""
    sock = execute(session)
    decoder = ResultDecoder(COLUMNS)
    pieces = []
    while not decoder.ended:
        pieces.append(sock.recv(PIECE))
        decoder.feed(pieces[-1])
    return pieces


def decode(answer: list[bytes]) -> int:
    decoder = ResultDecoder(COLUMNS)
    for piece in answer:
        decoder.feed(piece)
        if decoder.pending_bytes > BATCH_BYTES:
            decoder.take_batch()
    decoder.take_batch()
    assert decoder.ended
    return decoder.rows


def fetch(session: "Connection[Any]") -> int:
    sock = execute(session)
    decoder = ResultDecoder(COLUMNS)
    buffer = bytearray(PIECE)
    view = memoryview(buffer)
    while not decoder.ended:
        decoder.feed(view[: sock.recv_into(buffer)])
        if decoder.pending_bytes > BATCH_BYTES:
            decoder.take_batch()
    decoder.take_batch()
    return decoder.rows


def fetch_with_pymysql(server: PrivateServer) -> int:
    with server.connect(cursorclass=pymysql.cursors.SSCursor) as session, session.cursor() as cursor:
        cursor.execute(SQL)
        return sum(1 for _ in cursor)


if __name__ == "__main__":
    for line in run():
        print(line)
