"""The log of MariaDB 11.8, where the events inside a group do not say where they end."""

from collections.abc import Callable

import pytest

from tests.servers.launch import PrivateMariaDB
from tests.wire.dumps import NON_BLOCKING, WITH_ANNOTATIONS, decoded, end_of_log, read_dump
from tests.wire.events import events_of

_STATEMENTS = (
    "CREATE TABLE {s}.t (id INT PRIMARY KEY, v VARCHAR(20))",
    "BEGIN",
    "INSERT INTO {s}.t VALUES (1, 'a'), (2, 'b')",
    "SAVEPOINT p",
    "DELETE FROM {s}.t WHERE id = 2",
    "ROLLBACK TO p",
    "UPDATE {s}.t SET v = 'c' WHERE id = 1",
    "COMMIT",
    "XA START 'x'",
    "INSERT INTO {s}.t VALUES (3, 'x')",
    "XA END 'x'",
    "XA PREPARE 'x'",
    "XA COMMIT 'x'",
    "CREATE TABLE {s}.u AS SELECT * FROM {s}.t",
    "DROP TABLE {s}.t",
)


@pytest.mark.parametrize("flags", [NON_BLOCKING, NON_BLOCKING | WITH_ANNOTATIONS])
def test_groups_end_where_the_server_says(
    mariadb_11_server: PrivateMariaDB, fresh_schema: Callable[..., str], flags: int
) -> None:
    server = mariadb_11_server
    schema = fresh_schema(server)
    start = end_of_log(server)
    server.sql(*(statement.format(s=schema) for statement in _STATEMENTS))
    raw = read_dump(server, start, flags)
    decoder = decoded(raw, start)
    assert sum(event[13:17] == bytes(4) for event in map(bytes, events_of(raw))) > 10
    groups = decoder.take_groups().to_pylist()
    said = server.sql(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    begins = [int(row[1]) for row in said if row[2] == "Gtid"]
    assert [group["start"] for group in groups] == begins
    assert [group["end"] for group in groups] == [*begins[1:], end_of_log(server).offset]
    assert decoder.at == end_of_log(server)
    rows = [row for images in decoder.take_images() for row in images.batch.to_pylist()]
    assert sorted((row["_seq"], row["_group"], row["id"], row["v"]) for row in rows) == [
        (0, 1, 1, "a"),
        (1, 1, 2, "b"),
        (2, 1, 1, "a"),
        (3, 1, 1, "c"),
        (4, 2, 3, "x"),
        (5, 4, 1, "c"),
        (6, 4, 2, "b"),
        (7, 4, 3, "x"),
    ]
    assert decoder.voids == []  # the server cut the savepoint's rows out of the group
