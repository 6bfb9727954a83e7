"""Dumps and answers of real servers with every kind of event and type, as seeds for the fuzzer.

    python -m tests.layers.wire.recordings FILE

Servers that cannot be had are left out, and said so.
"""

import pickle
import random
import struct
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa

from catchment.demo.server import PrivateServer
from catchment.model.definition import Definition
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.catalog import read_definition
from catchment.source.session import connect
from tests.layers.wire.answers import Session, columns_of, prepared_answer, run, select
from tests.layers.wire.documents import as_json, document
from tests.layers.wire.dumps import NON_BLOCKING, WITH_ANNOTATIONS, end_of_log, read_dump
from tests.layers.wire.events import HEADER, events_of, seal
from tests.layers.wire.odd_values import fill
from tests.layers.wire.recorded import Answer, Recording
from tests.layers.wire.small_groups import write_columns, write_group_without_places, write_groups
from tests.layers.wire.small_tables import (
    ALTERED,
    MARIADB_TYPES,
    MYSQL_TYPES,
    NAME_OF,
    alter,
    create_altered,
    write_mysql_types,
    write_statements,
    write_types,
    write_vectors,
)
from tests.world.servers.builds import Build, mariadb_11, mysql_80, mysql_97
from tests.world.servers.debian import NotHere
from tests.world.servers.launch import PrivateMariaDB, PrivateMySQL

PLAIN = "n"  # schema of the tables that the log does not describe


PAYLOAD = 40
# The catalog does not tell labels beyond the basic plane.
_MYSQL_PLAIN = (*(kind for kind in MYSQL_TYPES if "😀" not in kind), "json", "year")
_MYSQL_TYPES = (
    "tinyint unsigned; smallint; mediumint unsigned; int; bigint unsigned; float; double; decimal(10,2); "
    "decimal(65,30); bit(9); bit(64); year; date; time(6); datetime(3); timestamp(6) null; char(8); varchar(300); "
    "varchar(20) character set latin1; text; longtext; json; binary(4); varbinary(300); blob; geometry; "
    "enum('a','é'); set('x','ü') character set latin1"
)
_VALUES = (
    "255, -1, 16777215, -5, 18446744073709551615, 0.1, 1e300, -1.5, 123.456, b'101', 1, 2155, '2024-02-29', "
    "'-838:59:58.5', '2000-01-01 01:02:03.4', '2037-01-19 03:14:07', 'été', REPEAT('é', 20), 'é', '', 'x', '[1]', "
    "'ab', x'00', x'ff', ST_GeomFromText('POINT(1 2)'), 'é', 'x,ü'"
)


def mysql_statements(schema: str, packed: bool) -> list[str]:
    """What writes every kind of event that a MySQL writes."""
    kinds = ", ".join(f"c{i} {kind}" for i, kind in enumerate(_MYSQL_TYPES.split("; ")))
    rng = random.Random(5)
    small = (as_json(document(rng)).replace("\\", "\\\\").replace("'", "''") for _ in range(40))
    documents = [text for text in small if len(text) < 600]
    statements = [
        f"CREATE TABLE {schema}.a (id int PRIMARY KEY, {kinds})",
        f"INSERT INTO {schema}.a VALUES (1, {_VALUES})",
        f"UPDATE {schema}.a SET id = 2",
        f"CREATE TABLE {schema}.j (id int PRIMARY KEY, j json, k json, v varchar(20))",
        *(f"INSERT INTO {schema}.j VALUES ({i}, '{d}', '[1]', 'v')" for i, d in enumerate(documents)),
        f"INSERT INTO {schema}.j VALUES (900, JSON_ARRAY(x'00', 1.5, NOW(6), CURTIME(), CURDATE(), 1e300), NULL, '')",
        f"INSERT INTO {schema}.j VALUES (901, JSON_ARRAY(REPEAT('x', 70000), 2147483648), '{{}}', '')",
        "SET binlog_row_value_options = PARTIAL_JSON",
        f"UPDATE {schema}.j SET j = JSON_SET(j, '$.a', 'n', '$[0]', 1.5), k = JSON_SET(k, '$[1]', 2) WHERE id < 20",
        f"UPDATE {schema}.j SET j = JSON_REMOVE(j, '$.a', '$[0]') WHERE id < 20",
        "SET binlog_row_value_options = ''",
        "SET binlog_row_image = MINIMAL",
        f"UPDATE {schema}.j SET v = 'm' WHERE id < 3",
        f"DELETE FROM {schema}.j WHERE id = 3",
        "SET binlog_row_image = FULL",
        "SET binlog_rows_query_log_events = ON",
        f"DELETE FROM {schema}.j WHERE id = 4",
        "SET binlog_rows_query_log_events = OFF",
        "XA START 'x', 'y'",
        f"UPDATE {schema}.j SET v = 'xa' WHERE id = 5",
        "XA END 'x', 'y'",
        "XA PREPARE 'x', 'y'",
        "XA COMMIT 'x', 'y'",
        "BEGIN",
        f"UPDATE {schema}.j SET v = 's' WHERE id = 6",
        "SAVEPOINT s",
        f"UPDATE {schema}.j SET v = 't' WHERE id = 7",
        "ROLLBACK TO s",
        "COMMIT",
        "SET SESSION binlog_format = STATEMENT",
        f"INSERT INTO {schema}.j (id) VALUES (950 + RAND() * 0)",
        "SET SESSION binlog_format = ROW",
    ]
    if packed:
        statements += [
            "SET binlog_transaction_compression = ON",
            f"UPDATE {schema}.j SET v = 'packed' WHERE id < 10",
            f"INSERT INTO {schema}.j VALUES (960, '[1]', NULL, 'packed')",
            "SET binlog_rows_query_log_events = ON",
            f"DELETE FROM {schema}.j WHERE id = 960",
            "SET binlog_rows_query_log_events = OFF",
            "XA START 'p'",
            f"UPDATE {schema}.j SET v = 'p' WHERE id = 9",
            "XA END 'p'",
            "XA PREPARE 'p'",
            "XA COMMIT 'p'",
            "SET binlog_transaction_compression = OFF",
            "SET gtid_next = 'AUTOMATIC:tagged'",
            f"DELETE FROM {schema}.j WHERE id = 8",
            "SET gtid_next = 'AUTOMATIC'",
        ]
    return [*statements, "FLUSH BINARY LOGS", f"DROP TABLE {schema}.j"]


def write_mysql(session: Session, packed: bool) -> None:
    run(session, *mysql_statements("f", packed))
    write_mysql_types(session, "f")
    write_columns(session, "f")
    if packed:
        write_vectors(session, "f")


def mariadb(session: Session, schema: str) -> None:
    run(session, "SET sql_mode = 'ALLOW_INVALID_DATES'")
    fill(session, schema)
    run(
        session,
        f"UPDATE {schema}.odd SET c44 = NULL, c50 = NULL LIMIT 3",
        f"DELETE FROM {schema}.odd LIMIT 2",
    )
    write_types(session, schema, MARIADB_TYPES)
    write_columns(session, schema)
    write_groups(session, schema)
    write_statements(session, schema)
    run(session, "SET GLOBAL log_bin_compress = ON", "FLUSH BINARY LOGS")
    run(session, f"CREATE TABLE {schema}.k (a int PRIMARY KEY, v varchar(300) COMMENT '{'long ' * 20}')")
    run(session, f"INSERT INTO {schema}.k VALUES (3, REPEAT('q', 300))", f"UPDATE {schema}.k SET a = a + 10")
    run(session, f"DELETE FROM {schema}.k", "XA START 'm'", f"INSERT INTO {schema}.k VALUES (1, 'x')")
    run(session, "XA END 'm'", "XA PREPARE 'm'", "XA ROLLBACK 'm'")


def unpacked(event: bytes) -> bytes:
    """A transaction payload with its events not compressed, so that a changed byte reaches them."""
    body = event[HEADER:-4]
    start = body.index(b"\x28\xb5\x2f\xfd")
    plain = pa.CompressedInputStream(pa.BufferReader(body[start:]), "zstd").read()
    size = b"\xfe" + struct.pack("<Q", len(plain))
    fields = b"\x01\x09" + size + b"\x02\x03\xfc\xff\x00" + b"\x03\x09" + size + b"\x00"
    head = bytearray(event[:HEADER])
    (end,) = struct.unpack_from("<I", head, 13)
    whole = bytes(head) + fields + plain + bytes(4)
    head[13:17] = struct.pack("<I", end - len(event) + len(whole))
    return seal(bytes(head) + whole[HEADER:])


def record(name: str, server: PrivateServer, write: Callable[[Session], None]) -> Recording:
    with server.connect() as session:
        run(session, "CREATE DATABASE f")
        start = end_of_log(server)
        write(session)
        flags = NON_BLOCKING | (WITH_ANNOTATIONS if name.startswith("MariaDB") else 0)
        return Recording(
            name, start, events_of(read_dump(server, start, flags)), answers=answers(session, "f")
        )


def answers(session: Session, schema: str) -> tuple[Answer, ...]:
    """The rows of all tables of one type, by SELECT."""
    found = []
    run(session, "SET NAMES utf8mb4", "SET time_zone = '+00:00'")
    for (table,) in run(
        session, f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"
    ):
        if table in NAME_OF:
            columns = columns_of(session, schema, table)
            sql = f"SELECT {', '.join(c.name for c in columns)} FROM {schema}.{table}"
            _, rows = select(session, sql, columns)
            found.append(Answer(NAME_OF[table], columns, rows, prepared_answer(session, sql)))
    return tuple(found)


def record_plain(name: str, server: PrivateServer, types: Iterable[str], levels: Iterable[str]) -> Recording:
    """Tables of one type and tables that are altered, in a log that does not describe them."""
    with server.connect() as session:
        run(session, f"CREATE DATABASE {PLAIN}", "SET sql_mode = 'ALLOW_INVALID_DATES'")
        start = end_of_log(server)
        definitions: dict[TableId, Definition] = {}
        for level in levels:
            run(session, f"SET GLOBAL binlog_row_metadata = {level}")
            of = f"_{level.lower()}"
            names = create_altered(session, PLAIN, of)
            definitions |= {TableId(PLAIN, n): defined(server, TableId(PLAIN, n)) for n in names}
            alter(session, PLAIN, of)
            write_types(session, PLAIN, tuple(types), of)
        run(session, "SET GLOBAL binlog_row_metadata = FULL")
        for (table,) in run(
            session, f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{PLAIN}'"
        ):
            if not table.startswith(ALTERED):
                definitions[TableId(PLAIN, table)] = defined(server, TableId(PLAIN, table))
        return Recording(f"{name}, plain", start, events_of(read_dump(server, start)), definitions)


def defined(server: PrivateServer, table: TableId) -> Definition:
    with connect(Endpoint("a", server.host, server.port, "catchment", server.password)) as session:
        return read_definition(session, table)


def recordings() -> list[Recording]:
    found = []
    with PrivateServer(server_id=9, settings={"log_bin_compress_min_len": 64}) as server:
        found.append(record("MariaDB", server, lambda session: mariadb(session, "f")))
        server.sql("SET GLOBAL log_bin_compress = OFF")
        found.append(record_plain("MariaDB", server, MARIADB_TYPES, ("NO_LOG", "MINIMAL", "FULL")))
    try:
        with PrivateMariaDB(mariadb_11(), server_id=9) as newer:
            found.append(record("MariaDB 11", newer, lambda s: write_group_without_places(s, "f")))
    except NotHere as why:
        print(f"left out: {why}")
    for build_of in (mysql_80, mysql_97):
        try:
            build: Build = build_of()
        except NotHere as why:
            print(f"left out: {why}")
            continue
        packed = build.version >= (8, 0, 20)
        with PrivateMySQL(build, server_id=9) as mysql:
            name = f"MySQL {build.version}"
            found.append(record(name, mysql, partial(write_mysql, packed=packed)))
            found.append(record_plain(name, mysql, _MYSQL_PLAIN, ("MINIMAL", "FULL")))
    return found


if __name__ == "__main__":
    made = recordings()
    Path(sys.argv[1]).write_bytes(pickle.dumps(made))
    for one in made:
        kinds = sorted({event[4] for event in one.events})
        print(f"{one.name}: {len(one.events)} events from {one.start}, types {kinds}")
