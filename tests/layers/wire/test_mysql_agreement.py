"""MySQL's log beside mysql-replication on the same bytes: every event of a random workload.

Where the two differ, the server's own answer decides. Known differences of mysql-replication 1.0.17, each shown
beside SELECT in `test_known_differences`:

- MySQL 8.0.15 writes no sign bit for YEAR; it reads one, so that columns behind a YEAR get the sign of others;
- YEAR 0 comes as 1900, BINARY(n) without the zero bytes at its end;
- in JSON a negative TIME loses its sign, bytes are cut, DATE is a datetime (the text of our side is SELECT's);
- PARTIAL_UPDATE_ROWS gives differences, not documents (test_mysql_json_parts.py has the server's answers).

Of the same value in other Python types (TIME, BIT, SET) nothing is said here.
"""

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import GtidEvent, QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from catchment.model.position import LogOffset
from tests.layers.wire.answers import Session, run
from tests.layers.wire.documents import as_json, document
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.test_log_random import Change, changes_of, plain, workload
from tests.world.servers.launch import PrivateMySQL

ROWS = (WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent)
COLUMNS = (
    "id bigint PRIMARY KEY, n bigint, u bigint unsigned, d decimal(20,4), f float, g double, v varchar(200), "
    "b varbinary(300), e enum('red','grün','x,y'), at datetime(6), day date"
)


def read_by_reference(server: PrivateMySQL, start: LogOffset, raw: bytes) -> list[Any]:
    """The events of the bytes, which take the place of the reference's connection behind its first event."""
    stream = BinLogStreamReader(
        connection_settings=server.login("root"),
        server_id=4713,
        log_file=start.file,
        log_pos=start.offset,
        resume_stream=True,
        only_events=[*ROWS, GtidEvent, QueryEvent, XidEvent],
    )
    stream.fetchone()
    connection = stream._stream_connection
    connection._rfile = io.BufferedReader(io.BytesIO(raw))
    connection._next_seq_id = 1
    events = []
    try:
        while (event := stream.fetchone()) is not None:
            events.append(event)
    finally:
        stream.close()
    return events


def changes(events: list[Any]) -> list[Change]:
    found: list[Change] = []
    for event in events:
        if not isinstance(event, ROWS):
            continue
        for row in event.rows:
            values = row.get("values")
            before = row.get("before_values") or (values if isinstance(event, DeleteRowsEvent) else None)
            after = row.get("after_values") or (values if isinstance(event, WriteRowsEvent) else None)
            found.append((event.table, before, after))
    return found


def documents(session: Session, schema: str) -> None:
    rng = random.Random(3)
    run(session, f"CREATE TABLE {schema}.j (id int PRIMARY KEY, j json)")
    with session.cursor() as cursor:
        for i in range(100):
            cursor.execute(f"INSERT INTO {schema}.j VALUES (%s, %s)", (i, as_json(document(rng))))
        cursor.execute(f"UPDATE {schema}.j SET j = '{{}}' WHERE id % 3 = 0")


@pytest.fixture
def recorded(
    mysql_server: PrivateMySQL, fresh_schema: Callable[..., str]
) -> tuple[PrivateMySQL, LogOffset, bytes]:
    schema = fresh_schema(mysql_server)
    start = end_of_log(mysql_server)
    with mysql_server.connect() as session:
        for i in range(2):
            run(session, f"CREATE TABLE {schema}.t{i} ({COLUMNS})")
        workload(random.Random(7), session, schema)
        documents(session, schema)
    return mysql_server, start, read_dump(mysql_server, start)


def decoded_keys(value: Any) -> Any:
    """The reference gives names and strings in documents as bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {decoded_keys(key): decoded_keys(cell) for key, cell in value.items()}
    return [decoded_keys(cell) for cell in value] if isinstance(value, list) else value


def test_rows_and_groups(recorded: tuple[PrivateMySQL, LogOffset, bytes]) -> None:
    server, start, raw = recorded
    decoder = decoded(raw, start)
    events = read_by_reference(server, start, raw)
    groups = decoder.take_groups().to_pylist()
    gtids = [event.gtid for event in events if isinstance(event, GtidEvent)]
    assert [f"{group['uuid'].hex()}:{group['sequence']}" for group in groups] == [
        g.replace("-", "") for g in gtids
    ]
    assert sum(group["kind"] == 0 for group in groups) == sum(isinstance(event, XidEvent) for event in events)
    ours, theirs = changes_of(decoder), changes(events)
    assert len(ours) > 500
    assert [table for table, _, _ in ours] == [table for table, _, _ in theirs]
    for (_, before, after), (_, their_before, their_after) in zip(ours, theirs, strict=True):
        for mine, other in ((before, their_before), (after, their_after)):
            if mine is not None and "j" in mine:
                assert json.loads(mine["j"]) == decoded_keys(other and other["j"])
                assert mine["id"] == (other and other["id"])
            else:
                assert plain(mine) == plain(other)


@pytest.mark.parametrize("fixture", ["mysql_server", "mysql_97_server"])
def test_known_differences(
    request: pytest.FixtureRequest, fresh_schema: Callable[..., str], fixture: str
) -> None:
    server: PrivateMySQL = request.getfixturevalue(fixture)
    table = f"{fresh_schema(server)}.t"
    start = end_of_log(server)
    server.sql(
        f"CREATE TABLE {table} (id int PRIMARY KEY, y year, u int unsigned, m mediumint unsigned, b binary(4), j json)",
        f"INSERT INTO {table} VALUES (1, 0, 4000000000, 16777215, x'0100', JSON_ARRAY(TIME'-01:02:03.5', x'00ff'))",
    )
    raw = read_dump(server, start)
    ((_, _, ours),) = changes_of(decoded(raw, start))
    ((_, _, theirs),) = changes(read_by_reference(server, start, raw))
    (answer,) = server.sql(f"SELECT y, u, m, b, j FROM {table}")
    assert ours is not None
    assert theirs is not None
    assert tuple(ours[name] for name in "yumbj") == answer
    differ = {name for name in "yumbj" if ours[name] != theirs[name]}
    assert differ == ({"y", "m", "b", "j"} if server.build.version < (8, 0, 16) else {"y", "b", "j"})
