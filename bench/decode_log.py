"""Rows per second of CPU when a binary log becomes Arrow, beside mysql-replication and go-mysql on the same bytes.

The dumps are read into memory first; go-mysql reads the log file. No decoder asks a server. Ours and go-mysql verify
every checksum, mysql-replication does not by default. Run: `python -m bench --only decode-log`.
"""

import io
import json
import struct
import time
from collections.abc import Callable

import pyarrow as pa
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from bench import go_reference
from bench.figures import Figure, figure
from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset
from catchment.wire.log.decoder import LogDecoder

SCHEMA = "bench_decode_log"
TABLE = f"{SCHEMA}.stress_test_pk"
PIECE = 1 << 18
BATCH_BYTES = 16 << 20


def run(rows: int = 1_000_000, transactions: int = 50_000, runs: int = 4) -> list[Figure]:
    """Medians of `runs` runs over one bulk insert of `rows` rows, and over one-row transactions."""
    with PrivateServer(settings={"innodb_buffer_pool_size": "256M"}) as server:
        server.sql(
            f"CREATE DATABASE {SCHEMA}",
            f"CREATE TABLE {TABLE} (id bigint AUTO_INCREMENT, sig varchar(40), c char(8),"
            " PRIMARY KEY (id, c))",
        )
        bulk = LogOffset(*server.log_end())
        insert = f"INSERT INTO {TABLE} (sig, c) SELECT SHA1(seq), LEFT(MD5(seq), 8) FROM {SCHEMA}.seq_1_to_"
        server.sql(f"{insert}{rows}")
        small = LogOffset(*server.log_end())
        server.sql(
            f"BEGIN NOT ATOMIC FOR i IN 1..{transactions} DO"
            f" INSERT INTO {TABLE} (sig, c) VALUES (SHA1(i), LEFT(MD5(i), 8)); END FOR; END"
        )
        return [
            *measure(server, "log, bulk insert", bulk, small, rows, runs),
            *measure(server, "log, one-row transactions", small, None, transactions, runs),
        ]


def measure(
    server: PrivateServer, name: str, start: LogOffset, stop: LogOffset | None, rows: int, runs: int
) -> list[Figure]:
    """Beside each reference, in pairs; the first is the cold one."""
    raw, end = read_dump(server, start), stop or LogOffset(*server.log_end())
    references: dict[str, Callable[[], float]] = {
        "mysql-replication, decode": lambda: _of_replication(server, raw, start, end, rows)
    }
    if (go := go_reference.program()) is not None:
        file = server.datadir / start.file
        references["go-mysql, decode"] = lambda: go_reference.rows_per_second(go, file, start, end, rows)
    figures = []
    for reference, measured in references.items():
        ours, theirs = [], []
        for _ in range(runs):
            ours.append(rows_per_second(rows, lambda: decode(raw, start, stop)))
            theirs.append(measured())
        unit = "rows/s of CPU"
        figures.append(figure(f"{name}, cold", ours[:1], unit, f"{reference}, cold", theirs[:1]))
        figures.append(figure(name, ours[1:], unit, reference, theirs[1:]))
    return figures


def _of_replication(server: PrivateServer, raw: bytes, start: LogOffset, end: LogOffset, rows: int) -> float:
    return rows_per_second(rows, lambda: decode_with_reference(server, raw, start, end))


def rows_per_second(rows: int, work: Callable[[], int]) -> float:
    start = time.process_time()
    found = work()
    spent = time.process_time() - start
    assert found == rows, f"{found} rows instead of {rows}"
    return rows / spent


def decode(raw: bytes, start: LogOffset, stop: LogOffset | None) -> int:
    """Feed pieces as a socket gives them, take batches of 16 MB."""
    decoder = LogDecoder(start, None, stop, before="key")
    view = memoryview(raw)
    batches: list[pa.RecordBatch] = []
    for at in range(0, len(raw), PIECE):
        decoder.feed(view[at : at + PIECE])
        if decoder.pending_bytes > BATCH_BYTES:
            batches += [images.batch for images in decoder.take_images()]
    batches += [images.batch for images in decoder.take_images()]
    assert decoder.ended or decoder.reached_stop
    return sum(batch.num_rows for batch in batches)


def decode_with_reference(
    server: PrivateServer, raw: bytes, start: LogOffset, end: LogOffset, *, is_mariadb: bool = True
) -> int:
    """mysql-replication's stream, whose connection is given the recorded bytes after its first event."""
    stream = BinLogStreamReader(
        connection_settings=server.login("root"),
        server_id=4711,
        log_file=start.file,
        log_pos=start.offset,
        end_log_pos=end.offset,
        resume_stream=True,
        only_events=[WriteRowsEvent],
        is_mariadb=is_mariadb,
    )
    stream.fetchone()
    connection = stream._stream_connection
    connection._rfile = io.BufferedReader(io.BytesIO(raw), PIECE)
    connection._next_seq_id = 1
    found = sum(len(event.rows) for event in stream)
    stream.close()
    return found


def read_dump(server: PrivateServer, start: LogOffset) -> bytes:
    """What the server sends for a dump that ends at the end of the log."""
    with server.connect() as session:
        with session.cursor() as cursor:
            cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
            cursor.execute("SET @mariadb_slave_capability = 4")
        command = struct.pack("<BIHI", 0x12, start.offset, 1, 0) + start.file.encode()
        sock = session._sock  # type: ignore[attr-defined]
        sock.sendall(struct.pack("<I", len(command)) + command)
        received = bytearray()
        while piece := sock.recv(PIECE):
            received += piece
        return bytes(received)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
