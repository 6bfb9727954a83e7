"""Streams over servers that die, logs that go, and logs that do not describe themselves."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.model.errors import Diverged, Purged, Retry
from catchment.rewind.sequence import ImageSequence
from catchment.serve.stream import kept_images
from catchment.serve.stream.events import Event, Restart, Row
from catchment.serve.stream.stream import Stream
from tests.promises.stream.mirror import Mirror
from tests.promises.stream.sources import source_of, until_copied, up_to, vgtid_of
from tests.world.checkpoints import ended_by_checkpoint
from tests.world.purged import begin_anew
from tests.world.servers.chosen import MYSQL, chosen_kind, chosen_server

T = "m.t"


@pytest.fixture
def server() -> Iterator[PrivateServer]:
    """One of its own, with a table of three rows, and a log with some files."""
    with chosen_server(server_id=131) as one:
        one.sql("CREATE DATABASE m", "CREATE TABLE m.t (id INT PRIMARY KEY, v VARCHAR(20))")
        one.sql("INSERT INTO m.t VALUES (1, 'a'), (2, 'b'), (3, 'c')", "FLUSH BINARY LOGS")
        one.sql("INSERT INTO m.t VALUES (4, 'd')")
        yield one


def streamed(server: PrivateServer, vgtid: Any = None) -> Stream:
    return catchment.stream(source_of({"-": server}), rules=["m.*"], vgtid=vgtid)


def has(key: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Row) and event.after is not None and event.after["id"] == key


@pytest.mark.promise("a stream resumes after a shard's server dies")
def test_a_server_that_dies_and_comes_back(server: PrivateServer) -> None:
    mirror = Mirror({T: ("id",)})
    with streamed(server) as stream:
        for event in until_copied(stream):
            mirror.take(event)
        server.sql("INSERT INTO m.t VALUES (5, 'e')")
        server.kill9()
        server.start()
        server.sql("INSERT INTO m.t VALUES (6, 'f')", "DELETE FROM m.t WHERE id = 1")
        for event in up_to(stream, has(6)):
            mirror.take(event)
        server.sql("INSERT INTO m.t VALUES (7, 'g')")
        for event in up_to(stream, has(7)):
            mirror.take(event)
    assert sorted(key for (key,) in mirror.rows["-", T]) == [2, 3, 4, 5, 6, 7]
    assert not mirror.restarts


def test_a_log_that_is_reset(server: PrivateServer) -> None:
    with streamed(server) as stream:
        text = vgtid_of(until_copied(stream)[-1])
        server.sql("RESET MASTER", "INSERT INTO m.t VALUES (5, 'e')")
        with pytest.raises(Diverged) as told:
            up_to(stream, has(5))
    assert told.value.retry is Retry.NEVER
    with pytest.raises(Diverged):
        streamed(server, text)


def test_a_log_that_is_gone(server: PrivateServer) -> None:
    with streamed(server) as stream:
        text = vgtid_of(until_copied(stream)[-1])
    server.sql("INSERT INTO m.t VALUES (5, 'e')")
    begin_anew(server)
    with pytest.raises(Purged, match="binlog"):
        streamed(server, text)


@pytest.mark.parametrize("metadata", ["NO_LOG", "MINIMAL"])
def test_a_log_that_names_no_columns(server: PrivateServer, metadata: str) -> None:
    """Tables come and change there, too; the vgtid has their definitions."""
    if chosen_kind() in MYSQL and metadata == "NO_LOG":
        pytest.skip("MySQL writes MINIMAL at least")
    server.sql(f"SET GLOBAL binlog_row_metadata = {metadata}", "FLUSH BINARY LOGS")
    mirror = Mirror({T: ("id",), "m.u": ("id",)})
    with streamed(server) as stream:
        for event in until_copied(stream):
            mirror.take(event)
        server.sql(
            "ALTER TABLE m.t ADD COLUMN n INT NOT NULL DEFAULT 3 FIRST", "INSERT INTO m.t VALUES (9, 5, 'e')"
        )
        for event in up_to(stream, has(5)):
            mirror.take(event)
    server.sql("ALTER TABLE m.t DROP COLUMN v", "INSERT INTO m.t VALUES (9, 6)")
    server.sql("CREATE TABLE m.u (id INT PRIMARY KEY, w VARCHAR(9))", "INSERT INTO m.u VALUES (7, 'new')")
    with streamed(server, mirror.text) as stream:
        for event in up_to(stream, has(7)):
            mirror.take(event)
        server.sql("UPDATE m.u SET w = 'x'", "INSERT INTO m.u VALUES (8, 'y')")
        for event in up_to(stream, has(8)):
            mirror.take(event)
    assert mirror.rows["-", T] == {
        **{(key,): {"id": key, "n": 3} for key in range(1, 5)},
        (5,): {"id": 5, "n": 9},
        (6,): {"id": 6, "n": 9},
    }
    assert mirror.rows["-", "m.u"] == {(7,): {"id": 7, "w": "x"}, (8,): {"id": 8, "w": "y"}}


def test_a_key_that_changes_while_nobody_reads(server: PrivateServer) -> None:
    """What the catalog says is ahead of the log: rows of before come by the columns of then, until the ALTER does."""
    server.sql("CREATE TABLE m.z (id INT PRIMARY KEY)")
    mirror = Mirror({T: ("id",), "m.z": ("id",)})
    with streamed(server) as stream:
        for event in until_copied(stream):
            mirror.take(event)
    server.sql("UPDATE m.t SET v = 'z' WHERE id = 1")
    server.sql(
        "ALTER TABLE m.t ADD COLUMN k INT NOT NULL DEFAULT 0, DROP PRIMARY KEY, ADD PRIMARY KEY (id, k)"
    )
    server.sql("INSERT INTO m.t VALUES (5, 'e', 1)", "INSERT INTO m.z VALUES (99)")
    with streamed(server, mirror.text) as stream:
        found = up_to(stream, has(99))
        found += up_to(stream, has(5)) if not any(map(has(5), found)) else []
        for event in found:
            mirror.take(event)
    assert [event.table.name for event in found if isinstance(event, Restart)] == ["t"]
    assert {key: row["v"] for (key,), row in mirror.rows["-", T].items()} == dict(
        zip(range(1, 6), "zbcde", strict=True)
    )


@pytest.mark.mariadb("checkpoint events")
def test_a_table_that_was_created_last(server: PrivateServer) -> None:
    """On a server at rest the first cut may lie in front of its CREATE."""
    for number in range(100):
        server.sql("DROP TABLE IF EXISTS m.z", f"UPDATE m.t SET v = '{number}'")
        server.sql("FLUSH BINARY LOGS", "CREATE TABLE m.z (id INT PRIMARY KEY)")
        if ended_by_checkpoint(server):
            break
    else:
        raise AssertionError("no checkpoint event came behind the CREATE")
    mirror = Mirror({T: ("id",), "m.z": ("id",)})
    with streamed(server) as stream:
        for event in until_copied(stream):
            mirror.take(event)
        server.sql("INSERT INTO m.z VALUES (98), (99)", "DELETE FROM m.z WHERE id = 98")
        for event in up_to(stream, has(99)):
            mirror.take(event)
    assert sorted(key for (key,) in mirror.rows["-", T]) == [1, 2, 3, 4]
    assert list(mirror.rows["-", "m.z"]) == [(99,)]


def test_a_transaction_larger_than_memory_is_meant_to_be(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_images, "ImageSequence", lambda: ImageSequence(1 << 16))
    with streamed(server) as stream:
        until_copied(stream)
        server.sql(
            "INSERT INTO m.t WITH RECURSIVE s AS (SELECT 100 AS k UNION ALL SELECT k + 1 FROM s WHERE k < 1000) "
            "SELECT a.k * 1000 + b.k - 100, REPEAT('x', 20) FROM s AS a CROSS JOIN (SELECT k FROM s LIMIT 100) AS b"
        )
        found = [event for event in up_to(stream, has(1_000_099)) if isinstance(event, Row)]
    assert len(found) == 90_100
