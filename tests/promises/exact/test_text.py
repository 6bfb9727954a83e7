"""Statements that the log holds as text, and a feed: what is known to leave it alone passes, the tables that others may
have changed are copied again, and of which nothing is known end the run."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CutMissed, Unsupported
from tests.promises.exact.steps import Steps, run_here
from tests.world.servers.chosen import chosen_server

MADE = (
    "CREATE DATABASE shop", "CREATE DATABASE away", "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)",
    "INSERT INTO shop.t VALUES (1, 1), (2, 2)", "CREATE TABLE away.plain (id INT)",
    "CREATE VIEW away.seen AS SELECT * FROM shop.t", "CREATE TABLE away.emptied (id INT) ENGINE=MEMORY",
    "INSERT INTO away.emptied VALUES (1)", "CREATE TABLE mysql.beat (id INT PRIMARY KEY, value BIGINT)",
    "CREATE TABLE mysql.sent_before (id INT)",
)  # fmt: skip
# As providers of servers write it, whatever binlog_format says.
HEARTBEAT = "INSERT INTO mysql.beat (id, value) VALUES (1, 17) ON DUPLICATE KEY UPDATE value = 17"
USER = "catchment@'%'"


@pytest.fixture(scope="module")
def alone() -> Iterator[PrivateServer]:
    """A server whose grants these tests change."""
    with chosen_server(server_id=113) as server:
        yield server


@pytest.fixture
def server(alone: PrivateServer) -> Iterator[PrivateServer]:
    """The server with fresh schemas `shop` and `away`, as MADE makes them."""
    alone.sql(*MADE)
    yield alone
    alone.sql("DROP DATABASE shop", "DROP DATABASE away", "DROP TABLE mysql.beat, mysql.sent_before")
    alone.sql(f"REVOKE SHOW VIEW, TRIGGER ON *.* FROM {USER}")


def as_text(server: PrivateServer, *statements: str) -> None:
    with closing(server.connect()) as session, session.cursor() as cursor:
        for statement in ("SET binlog_format = STATEMENT", *statements):
            cursor.execute(statement)


@pytest.mark.promise(
    "of a statement logged as text Catchment knows which tables it may have changed, or it stops its shard"
)
def test_text_stops_its_shard_where_it_is_not_known_what_it_changed(
    server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": server}, "shop")
    steps.must_be_equal("t", "id")
    as_text(server, HEARTBEAT, "DELETE FROM mysql.sent_before")
    server.sql("UPDATE shop.t SET v = 8 WHERE id = 2")
    steps.must_be_equal("t", "id")
    as_text(server, "INSERT INTO away.plain VALUES (1)")
    server.sql("UPDATE shop.t SET v = 9 WHERE id = 2")
    with pytest.raises(Unsupported, match=r"GRANT SHOW VIEW, TRIGGER ON \*\.\*"):
        steps.run()
    server.sql(f"GRANT SHOW VIEW, TRIGGER ON *.* TO {USER}")
    steps.must_be_equal("t", "id")
    server.restart()
    server.sql("SELECT * FROM away.emptied", "INSERT INTO shop.t VALUES (3, 3)")
    as_text(server, "DELETE FROM away.plain", "CREATE TEMPORARY TABLE away.p (a INT)", "DROP TABLE away.p")
    steps.must_be_equal("t", "id")
    as_text(server, "UPDATE away.seen SET v = 7")
    steps.must_stop(caplog, "t", r"it may have been changed by .*UPDATE away\.seen")
    steps.renew("INSERT INTO away.plain VALUES (9)")
    steps.must_be_equal("t", "id", "v")


def test_the_copy_goes_over_text_that_leaves_it_alone(
    server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    server.sql(f"GRANT SHOW VIEW, TRIGGER ON *.* TO {USER}")
    as_text(server, "INSERT INTO away.plain VALUES (1)")
    steps = Steps(tmp_path, {"a": server}, "shop")
    steps.must_be_equal("t", "id")


@pytest.mark.mariadb("on MySQL the first floor is the cut, and the text lies before it")
def test_a_feed_does_not_begin_in_front_of_text_that_would_end_it(
    server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    as_text(server, "UPDATE away.seen SET v = 7")
    steps = Steps(tmp_path, {"a": server}, "shop")
    with pytest.raises(CutMissed, match="commit any transaction"):
        steps.run()
    server.sql("INSERT INTO away.plain VALUES (1)", "INSERT INTO away.plain VALUES (1)")
    steps.must_be_equal("t", "id")
