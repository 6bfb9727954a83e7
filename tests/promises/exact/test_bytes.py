"""Bytes that are no text, in statements and in what a server shows of its tables."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from catchment.demo.server import PrivateServer
from tests.promises.exact.manifests import must_go_on, newest
from tests.promises.exact.steps import Steps, caught_up
from tests.world.settled import settled


def as_client(server: PrivateServer, charset: str, schema: str, *statements: bytes) -> None:
    """Run statements as they stand, in a session that says that they are of a character set."""
    login = server.login("root")
    with (
        closing(pymysql.connect(**login, charset="latin1", autocommit=True)) as session,
        session.cursor() as cursor,
    ):
        for statement in (f"SET NAMES {charset}".encode(), f"USE {schema}".encode(), *statements):
            cursor.execute(statement)


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of a table whose declaration has bytes that are no text, as the server shows it, and of a plain one."""
    schema = fresh_schema(*shards[:1])
    made = b"CREATE TABLE t (id INT PRIMARY KEY, b BINARY(2) NOT NULL DEFAULT '\xe9\xff')"
    as_client(shards[0], "latin1", schema, made, b"INSERT INTO t (id) VALUES (1)")
    plain = ("CREATE TABLE plain (id INT PRIMARY KEY)", "INSERT INTO plain VALUES (1)")
    return caught_up(monkeypatch, tmp_path, {"a": shards[0]}, schema, *plain)


@pytest.mark.promise("bytes that are no text end no run, in statements and in what the catalog shows")
def test_they_end_no_run(steps: Steps) -> None:
    server = steps.servers["a"]
    as_client(
        server, "latin1", steps.schema, b"ALTER TABLE t ADD c INT COMMENT '\xe9'",
        b"ALTER TABLE t ADD d VARBINARY(9) DEFAULT '\xe9\xff'", b"INSERT INTO t (id, c) VALUES (2, 2)",
    )  # fmt: skip
    as_client(
        server, "binary", steps.schema, b"ALTER TABLE t ADD e INT CHECK (e <> LENGTH(_binary'\xe9\xff'))",
        b"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.d = _binary'\xe9\xff\x00'",
        b"CREATE VIEW v AS SELECT _binary'\xe9\xff' AS x", b"INSERT INTO t (id, e) VALUES (3, 7)",
    )  # fmt: skip
    # In gbk the two bytes are one character, of which the second one is a backslash by itself.
    as_client(
        server, "gbk", steps.schema, b"ALTER TABLE plain ADD c INT COMMENT '\xbf\x5c', COMMENT '\xbf\x5c'",
        b"INSERT INTO plain VALUES (2, 2)",
    )  # fmt: skip
    steps.must_be_equal("plain", "id", "c")
    steps.renew("UPDATE plain SET c = 9 WHERE id = 1")
    steps.must_be_equal("t", "id", "b", "c", "d", "e")
    settled(steps.feed)


@pytest.mark.promise(
    "a value or a label that is no text makes its table stale until it is corrected, and no other"
)
def test_others_go_on(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Seen on MariaDB 10.11 and 11.8, MySQL 8.0 and 9.7: they take half a surrogate pair in ucs2, and any label."""
    made = (
        "CREATE TABLE plain (id INT PRIMARY KEY, a INT)", "INSERT INTO plain VALUES (1, 1)",
        "CREATE TABLE half (id INT PRIMARY KEY, t VARCHAR(9) CHARACTER SET ucs2)", "INSERT INTO half VALUES (1, 'a')",
        "CREATE TABLE labels (id INT PRIMARY KEY)", "INSERT INTO labels VALUES (1)",
    )  # fmt: skip
    schema = fresh_schema(*shards[:1])
    steps = caught_up(monkeypatch, tmp_path, {"a": shards[0]}, schema, *made)
    exact = newest(steps).epoch
    steps.sql("a", "INSERT INTO half VALUES (2, _ucs2 x'D800')", "INSERT INTO plain VALUES (2, 2)")
    steps.sql("a", "UPDATE half SET t = 'b' WHERE id = 2")
    steps.sql(
        "a", *("UPDATE plain SET a = a + 1" for _ in range(3))
    )  # chunks of `half` are read behind its rows
    steps.must_stop(caplog, "half", "a value is not valid text")
    must_go_on(steps, exact, {"half"}, {"plain": ("id", "a")})
    steps.renew("UPDATE plain SET a = 4 WHERE id = 2")
    assert steps.lake("half", "id", "t") == steps.source("half", "id", "t")
    exact = newest(steps).epoch
    as_client(
        shards[0], "utf8mb4", schema, b"ALTER TABLE labels ADD e ENUM('\xe9\xff', 'b') CHARACTER SET utf8mb4",
        b"INSERT INTO labels VALUES (2, 'b')", b"INSERT INTO plain VALUES (5, 5)",
    )  # fmt: skip

    steps.must_stop(caplog, "labels", "label b'.*' is not valid utf8mb4")
    must_go_on(steps, exact, {"labels"}, {"plain": ("id", "a")})
    steps.sql("a", "ALTER TABLE labels DROP e", *("UPDATE plain SET a = a + 1" for _ in range(3)))
    steps.renew("UPDATE plain SET a = 5 WHERE id = 2")
    assert steps.lake("labels", "id") == steps.source("labels", "id")
