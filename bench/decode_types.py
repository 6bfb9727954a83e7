"""What types cost: a wide table of all families and one heavy with JSON, decoded from the log and from a SELECT, and
the CPU time of one value of each type.

The bytes are in memory first; only decoding is measured. Run: `python -m bench --only decode-types`, or
`python -m bench.decode_types` for the list of all types.
"""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from tests.world.servers.builds import mysql_97
from tests.world.servers.debian import NotHere
from tests.world.servers.launch import PrivateMySQL

from bench.decode_log import decode, decode_with_reference, read_dump, rows_per_second
from bench.figures import Figure
from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset
from catchment.model.table import Column
from catchment.wire.cells.types import from_catalog
from catchment.wire.packets.results import ResultDecoder
from catchment.wire.packets.statements import execute_packet, parse_prepare_ok, prepare_packet

SCHEMA = "bench_decode_types"
PIECE = 1 << 18
_TEXT = "CONCAT(LEFT(SHA1(seq), 15), ' é€ ', seq)"
_ASCII = "LEFT(SHA1(seq), 20)"

# Definition of a column, and SQL of its values.
TYPES = {
    "tinyint": "seq % 100",
    "smallint unsigned": "seq % 60000",
    "mediumint": "seq",
    "int": "seq",
    "bigint": "seq * 1000003",
    "bigint unsigned": "18446744073709551615 - seq",
    "float": "seq / 7",
    "double": "seq / 7e0",
    "decimal(9,2)": "seq / 100",
    "decimal(20,6)": "seq * 12345.678901",
    "decimal(38,10)": "seq * 1234567890123.0123456789",
    "decimal(65,30)": "seq * 1234567890123.0123456789",
    "bit(17)": "seq % 100000",
    "bit(64)": "seq",
    "year": "1970 + seq % 100",
    "date": "'2020-01-01' + INTERVAL seq % 5000 DAY",
    "time(6)": "SEC_TO_TIME(seq % 80000 + 0.123456)",
    "datetime": "'2020-01-01' + INTERVAL seq SECOND",
    "datetime(6)": "'2020-01-01' + INTERVAL seq * 1000003 MICROSECOND",
    "timestamp(3)": "'2020-01-01' + INTERVAL seq SECOND",
    "char(20)": _ASCII,
    "varchar(40)": _ASCII,
    "varchar(41)": _TEXT,
    "varchar(40) character set latin1": "CONCAT(LEFT(SHA1(seq), 15), ' é ', seq)",
    "varchar(40) character set gbk": "CONCAT(LEFT(SHA1(seq), 15), ' 中文 ', seq)",
    "varchar(40) character set utf16": _TEXT,
    "text": "REPEAT(SHA1(seq), 5)",
    "binary(16)": "UNHEX(MD5(seq))",
    "varbinary(40)": "UNHEX(SHA1(seq))",
    "blob": "REPEAT(UNHEX(SHA1(seq)), 10)",
    "enum('a','bb','ccc')": "1 + seq % 3",
    "set('a','bb','ccc','d')": "seq % 16",
    "uuid": "MD5(seq)",
    "inet6": "CONCAT('2001:db8::', HEX(seq % 65535))",
    "point": "POINT(seq, 1)",
    "varchar(400) compressed": "REPEAT(SHA1(seq), 9)",
}
JSON = (
    'CONCAT(\'{"id": \', seq, \', "name": "\', LEFT(SHA2(seq, 256), 40), \'", "tags": ["a", "b", \', seq / 7,'
    ' \', null, true], "lines": [\', REPEAT(\'{"sku": "abcdef", "count": 12, "price": 9.75}, \', 20), \'{}]}\')'
)
_UNKNOWN = ("compressed",)  # what mysql-replication cannot read


def run(rows: int = 20_000, runs: int = 5) -> list[Figure]:
    """Medians of `runs` runs over `rows` rows of 60 columns and over `rows` rows with three documents of 1 kB.

    The documents of MySQL, which has a binary form of them, are left out where its server cannot be had.
    """
    wide = {kind: sql for kind, sql in TYPES.items() if not any(word in kind for word in _UNKNOWN)}
    columns = (list(wide.items()) * 2)[:60]
    with PrivateServer(settings={"innodb_buffer_pool_size": "256M"}) as server:
        server.sql(f"CREATE DATABASE {SCHEMA}")
        figures = measured(server, "wide", columns, rows, runs)
        figures += measured(server, "JSON", [("json", JSON)] * 3, rows, runs)
        figures += slowest(costs(server, rows, 3))
    return figures + _mysql_documents(rows, runs)


def _mysql_documents(rows: int, runs: int) -> list[Figure]:
    try:
        build = mysql_97()
    except NotHere as why:
        print(f"  no figures of MySQL's JSON: {why}")
        return []
    with PrivateMySQL(build, settings={"innodb_buffer_pool_size": "256M"}) as server:
        server.sql(f"CREATE DATABASE {SCHEMA}")
        return measured(server, "JSON of MySQL", [("json", JSON)] * 3, rows, runs)


def measured(
    server: PrivateServer, name: str, columns: Sequence[tuple[str, str]], rows: int, runs: int
) -> list[Figure]:
    """Rows per second from the log, beside mysql-replication, and from a SELECT, beside PyMySQL."""
    raw, start, found, answer = recorded(server, columns, rows)
    end = LogOffset(*server.log_end())
    log = statistics.median(rows_per_second(rows, lambda: decode(raw, start, None)) for _ in range(runs))
    mariadb = not isinstance(server, PrivateMySQL)
    theirs = rows_per_second(rows, lambda: decode_with_reference(server, raw, start, end, is_mariadb=mariadb))
    read = statistics.median(rows_per_second(rows, lambda: decode_answer(found, answer)) for _ in range(runs))
    pymysql = rows_per_second(rows, lambda: len(server.sql(f"SELECT * FROM {SCHEMA}.t")))
    return [
        _figure(f"log, {name} table, decode", log, "mysql-replication, decode", theirs, runs),
        _figure(f"chunk, {name} table, decode", read, "PyMySQL, fetch", pymysql, runs),
    ]


def _figure(name: str, value: float, reference: str, theirs: float, runs: int) -> Figure:
    return {
        "name": name,
        "value": round(value),
        "unit": "rows/s of CPU",
        "reference": reference,
        "reference_value": round(theirs),
        "ratio": round(value / theirs, 1),
        "runs": runs,
    }


def recorded(
    server: PrivateServer, columns: Sequence[tuple[str, str]], rows: int
) -> tuple[bytes, LogOffset, tuple[Column, ...], list[bytes]]:
    """A new table's bytes: its log, where that starts, its columns, and the answer to a SELECT."""
    definitions = ", ".join(f"c{i} {kind}" for i, (kind, _) in enumerate(columns))
    values = ", ".join(sql for _, sql in columns)
    server.sql(
        f"DROP TABLE IF EXISTS {SCHEMA}.t",
        f"CREATE TABLE {SCHEMA}.t (id int PRIMARY KEY, {definitions}) CHARACTER SET utf8mb4",
    )
    start = LogOffset(*server.log_end())
    server.sql(f"INSERT IGNORE INTO t SELECT seq, {values} FROM seq_1_to_{rows}", database=SCHEMA)
    described = server.sql(
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{SCHEMA}' AND TABLE_NAME = 't' ORDER BY ORDINAL_POSITION"
    )
    found = tuple(Column(name, from_catalog(*rest)) for name, *rest in described)
    return read_dump(server, start), start, found, answered(server, found)


def answered(server: PrivateServer, columns: tuple[Column, ...]) -> list[bytes]:
    """The server's answer to a SELECT of all rows in the binary protocol."""
    with server.connect() as session:
        sock: Any = session._sock  # type: ignore[attr-defined]
        sock.sendall(prepare_packet(f"SELECT * FROM {SCHEMA}.t"))
        reply = b""
        while (prepared := parse_prepare_ok(reply)) is None:
            reply += sock.recv(PIECE)
        sock.sendall(execute_packet(prepared.statement_id))
        decoder, pieces = ResultDecoder(columns), []
        while not decoder.ended:
            pieces.append(sock.recv(PIECE))
            decoder.feed(pieces[-1])
        return pieces


def decode_answer(columns: tuple[Column, ...], answer: list[bytes]) -> int:
    """Decode a recorded answer, taking batches of 16 MB."""
    decoder = ResultDecoder(columns)
    for piece in answer:
        decoder.feed(piece)
        if decoder.pending_bytes > 16 << 20:
            decoder.take_batch()
    decoder.take_batch()
    return decoder.rows


def costs(server: PrivateServer, rows: int, runs: int, width: int = 8) -> dict[str, tuple[float, float]]:
    """Nanoseconds of CPU for one value of each type, from the log and from a SELECT: the least of `runs`, of tables
    with `width` columns of the type."""
    found = {}
    for kind, sql in TYPES.items():
        raw, start, columns, answer = recorded(server, [(kind, sql)] * width, rows)
        log = _nanoseconds(rows, width, runs, lambda raw=raw, start=start: decode(raw, start, None))  # type: ignore[misc]
        read = _nanoseconds(rows, width, runs, lambda c=columns, a=answer: decode_answer(c, a))  # type: ignore[misc]
        found[kind] = (log, read)
    return found


def _nanoseconds(rows: int, width: int, runs: int, work: Callable[[], int]) -> float:
    return min(1e9 / rows_per_second(rows, work) / width for _ in range(runs))


def slowest(found: dict[str, tuple[float, float]], most: int = 4) -> list[Figure]:
    """The types whose values cost most in the log, beside an INT."""
    ranked = sorted(found, key=lambda kind: -found[kind][0])[:most]
    return [
        {
            "name": f"log, a value of {kind}",
            "value": round(found[kind][0], 1),
            "unit": "ns of CPU",
            "reference": "int",
            "reference_value": round(found["int"][0], 1),
            "ratio": round(found[kind][0] / found["int"][0], 1),
            "runs": 3,
        }
        for kind in ranked
    ]


if __name__ == "__main__":
    with PrivateServer(settings={"innodb_buffer_pool_size": "256M"}) as own:
        own.sql(f"CREATE DATABASE {SCHEMA}")
        for type_name, (from_log, from_select) in costs(own, 20_000, 3).items():
            print(f"{type_name:40} {from_log:8.1f} {from_select:8.1f}")
