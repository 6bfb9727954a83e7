"""Definitions that do not fit the log where it does not describe itself: refused, or copied later; never misread."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.api.read import read
from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkReceipt, ChunkTask, Target
from catchment.model.chunk import Chunk
from catchment.model.definition import Definition
from catchment.model.errors import Retry, SourceError
from catchment.model.position import LogOffset, Position
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.run_task import run_task
from catchment.schema.shape import first_shape
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.catalog import read_definition, read_table
from catchment.source.definitions_at import definitions_at, described
from catchment.source.session import connect
from catchment.state.faults import Fault
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.promises.exact.steps import run_here
from tests.promises.exact.undescribed import (
    ADD,
    MINIMAL,
    TABLE,
    Servers,
    make_table,
    must_be_equal,
    started,
    write,
)
from tests.world.servers.builds import Build

T = TableId.parse(TABLE)
XA = "'held'"


@pytest.fixture(scope="module")
def both(mysql_80_build: Build) -> Iterator[Servers]:
    """A MariaDB and a MySQL 8.0."""
    with started(mariadb=(None, MINIMAL), mysql=(mysql_80_build, MINIMAL)) as servers:
        yield servers


@pytest.fixture
def fresh(both: Servers) -> Servers:
    """The same with their table as it was."""
    make_table(both)
    return both


def _endpoint(server: PrivateServer) -> Endpoint:
    return Endpoint("-80", server.host, server.port, "catchment", server.password)


def _position(server: PrivateServer) -> Position:
    """Where the log ends now."""
    endpoint = _endpoint(server)
    with connect(endpoint) as session:
        found = session.server
    return Position(LogOffset(*server.log_end()), 0, found, found.gtids(""))


def _defined(server: PrivateServer) -> Definition:
    with connect(_endpoint(server)) as session:
        return read_definition(session, T)


def _copy_all(server: PrivateServer, floor: LogOffset, definition: Definition, root: Path) -> ChunkTask:
    """A task that copies the table in one chunk, at the end of the log."""
    with connect(_endpoint(server)) as session:
        shape = first_shape(read_table(session, T))
    position = _position(server)
    chunk = Chunk("-80", T, None, None, True)
    target = Target(LakeWriter(root), ("-80",), 1, "1")
    state = ShardState(position, definitions=(definition,), keys=())
    return ChunkTask(_endpoint(server), state, floor, position.at, (chunk,), (shape,), target, asks=False)


def test_a_catalog_that_is_newer_than_the_position_is_refused(fresh: Servers, tmp_path: Path) -> None:
    for name, server in fresh.items():
        before = _position(server)
        server.sql("CREATE INDEX b ON shop.t (b)", "CREATE TABLE shop.other (id INT PRIMARY KEY)")
        server.sql(f"INSERT INTO {TABLE} SET id = 51, a = 1")
        assert definitions_at(_endpoint(server), before, [T]) == (_defined(server),)
        server.sql(ADD)
        here = described(_endpoint(server), ShardState(before, copies=(Copy(T),)))
        assert here.definitions == (Definition.unknown(T),)
        with pytest.raises(SourceError) as refused:
            definitions_at(_endpoint(server), before, [T])
        assert refused.value.retry is Retry.NEVER
        for part in ("shard -80, shop.t: it was altered at", str(before.at), "set binlog_row_metadata=FULL"):
            assert part in str(refused.value)
        behind = _position(server)
        assert definitions_at(_endpoint(server), behind, [T]) == (_defined(server),)
        _chunk_misfits(server, before.at, behind.at, tmp_path / name)


def _chunk_misfits(server: PrivateServer, floor: LogOffset, behind: LogOffset, root: Path) -> None:
    """A chunk whose floor lies before an ALTER cannot take the definitions from behind it; a later one can."""
    early = run_task(_copy_all(server, floor, _defined(server), root))
    assert isinstance(early, ChunkReceipt)
    assert early.copied == (), "to be repeated, not the end of the feed"
    ((chunk, why),) = early.refused
    assert chunk.table == T
    assert "shop.t: its definition changed at" in why
    later = run_task(_copy_all(server, behind, _defined(server), root))
    assert isinstance(later, ChunkReceipt)
    assert [copied.rows for copied in later.copied] == [51]
    assert later.refused == ()


def test_chunks_wait_until_their_floor_is_behind_an_alter(
    fresh: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On MySQL an XA transaction that nobody ends keeps floors where they are, here before an ALTER."""
    run_here(monkeypatch)
    server = fresh["mysql"]
    server.sql("CREATE TABLE shop.held (id INT PRIMARY KEY)", "CREATE TABLE shop.rest (id INT PRIMARY KEY)")
    feed = make_feed(tmp_path, {"-80": server}, "shop", chunk_rows=10, interval="100ms")
    planned = 0

    def alter_behind_the_first_plan(place: Fault) -> None:
        nonlocal planned
        planned += place is Fault.AFTER_PLAN
        if place is Fault.AFTER_PLAN and planned == 1:
            _prepare(server)
            write(server, 51, "a", "b", "c")
            server.sql(ADD)
            write(server, 52, "n", "a", "b", "c")

    only: Servers = {"-80": server}
    with FeedRun(feed, alter_behind_the_first_plan) as run:
        manifest = run.wait_for_log(only)
        for key in (53, 54, 55):
            write(server, key, "n", "a", "b", "c")
            server.sql(f"INSERT INTO shop.rest VALUES ({key})")
            manifest = run.wait_for_log(only)
        rest = read(feed, "shop.rest", manifest.epoch).arrow()["id"].to_pylist()
        assert sorted(rest) == [53, 54, 55]
        (copy,) = (copy for copy in manifest.cut.copies if copy.table == T)
        assert (copy.copied, copy.done) == (None, False), "nothing was copied over the ALTER"
        (known,) = (d for d in manifest.cut.shards["-80"].definitions if d.table == T)
        assert [c.name for c in known.columns] == ["id", "n", "a", "b", "c"]
        server.sql(f"XA COMMIT {XA}")
        run.wait("all is copied", lambda epochs: epochs[-1].cut.copied)
        must_be_equal(run, only)
    assert read(feed, "shop.held").arrow().num_rows == 1


def _prepare(server: PrivateServer) -> None:
    session = server.connect()
    with session.cursor() as cursor:
        for statement in (
            f"XA START {XA}",
            "INSERT INTO shop.held VALUES (1)",
            f"XA END {XA}",
            f"XA PREPARE {XA}",
        ):
            cursor.execute(statement)
    session.close()
