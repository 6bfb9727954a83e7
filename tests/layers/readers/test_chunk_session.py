"""A group of chunks of several tables on one connection: one that cannot be read leaves the others whole."""

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkTask, Target
from catchment.model.chunk import Chunk
from catchment.model.epoch import TableShape
from catchment.model.errors import CorruptResult, CutMissed, Diverged
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.model.widened import Widened
from catchment.readers.copy import copy_chunks, read_group
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.catalog import read_table
from catchment.source.first_cut import originate
from catchment.source.offsets import log_files
from catchment.source.select import select_chunk
from catchment.source.session import Session, connect
from tests.promises.exact.feedrun import make_feed
from tests.world import records
from tests.world.patience import until
from tests.world.servers.chosen import chosen_server

ROWS = 20_000  # more than the socket holds: the rest of an abandoned result comes later


@pytest.mark.parametrize(
    ("type_", "wider"),
    [
        ("INT", "VARCHAR(20)"),
        ("DECIMAL(9,2)", "DECIMAL(20,4)"),
        ("DECIMAL(9,2)", "DECIMAL(60,4)"),
        ("DECIMAL(40,2)", "DECIMAL(60,4)"),
        ("BIT(20)", "BIT(40)"),
    ],
)
def test_the_table_behind_one_that_cannot_be_decoded_is_read(
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    type_: str,
    wider: str,
) -> None:
    schema = fresh_schema(shard)
    for name in ("bad", "good"):
        shard.sql(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v {type_})",
            f"INSERT INTO {name} SELECT seq, seq FROM seq_1_to_{ROWS}",
            database=schema,
        )
    shard.sql(f"INSERT INTO {schema}.bad VALUES (0, 0)")  # behind another group rows are proven visible
    feed = make_feed(tmp_path, {"-80": shard}, schema, chunk_rows=ROWS)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    origin = originate("f", endpoints, lambda table: table.schema == schema, 0)

    def altered_afterwards(session: Session, table: TableId) -> Table:
        found = read_table(session, table)
        if table.name == "bad":
            shard.sql(f"ALTER TABLE {schema}.bad MODIFY v {wider}")
        return found

    monkeypatch.setattr("catchment.readers.selected.read_table", altered_afterwards)
    state = origin.cut.shards["-80"]
    chunks = tuple(Chunk("-80", shape.table, None, None, last=True) for shape in origin.shapes)
    target = Target(LakeWriter(tmp_path / "lake"), ("-80",), origin.epoch + 1, "x")
    at = state.position.at
    group = read_group(ChunkTask(endpoints["-80"], state, at, at, chunks, origin.shapes, target))
    assert {table.name: rows.num_rows for table, rows in group.rows.items()} == {"good": ROWS}
    ((refused, why),) = group.refused
    assert refused.table.name == "bad"
    assert re.search(r"['(]v[',)]", why)


def test_a_result_that_is_broken_while_its_table_is_as_planned_ends_the_group(
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", database=schema)
    feed = make_feed(tmp_path, {"-80": shard}, schema, chunk_rows=ROWS)
    (endpoint,) = feed.endpoints()
    origin = originate("f", {"-80": endpoint}, lambda table: table.schema == schema, 0)

    def broken(*_: object) -> None:
        raise CorruptResult("row 1: the packet ends too early")

    monkeypatch.setattr("catchment.readers.selected.select_chunk", broken)
    (shape,) = origin.shapes
    state = origin.cut.shards["-80"]
    at, chunks = state.position.at, (Chunk("-80", shape.table, None, None, last=True),)
    target = Target(LakeWriter(tmp_path / "lake"), ("-80",), origin.epoch + 1, "x")
    with pytest.raises(CorruptResult, match="ends too early"):
        read_group(ChunkTask(endpoint, state, at, at, chunks, (shape,), target))


def test_a_shard_with_a_former_type_is_copied(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    """Another shard made the column wider while this one was being copied."""
    schema = fresh_schema(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 7)", database=schema)
    shard.sql("INSERT INTO t VALUES (2, 8)", database=schema)
    feed = make_feed(tmp_path, {"-80": shard}, schema, chunk_rows=ROWS)
    (endpoint,) = feed.endpoints()
    origin = originate("f", {"-80": endpoint}, lambda table: table.schema == schema, 0)
    (before,) = origin.shapes
    key, column = before.columns
    wide = msgspec.structs.replace(column, column=Column("v", ColumnType(Kind.BIGINT)))
    state = origin.cut.shards["-80"]
    target = Target(LakeWriter(tmp_path / "lake"), ("-80",), origin.epoch + 1, "x")
    chunks = (Chunk("-80", before.table, None, None, last=True),)
    for shards, copied in ((("-80",), {"t"}), (("80-",), set[str]())):
        former = (Widened("v", ColumnType(Kind.INT), shards),)
        shape = msgspec.structs.replace(before, columns=(key, wide), widened=former)
        at = state.position.at
        group = read_group(ChunkTask(endpoint, state, at, at, chunks, (shape,), target))
        assert {table.name for table, rows in group.rows.items() if rows.num_rows} == copied
    ((_, why),) = group.refused
    assert "its definition is not that of the lake (v)" in why


@pytest.mark.mariadb("on MySQL the first floor is the cut, and the purged file held nothing behind it")
def test_a_floor_whose_file_was_purged_moves_on(fresh_schema: Callable[..., str], tmp_path: Path) -> None:
    """The cut may lie in a newer file, whose log nobody has taken away. What an open XA transaction has, no purge
    tells."""
    with chosen_server(server_id=137) as own:
        schema = fresh_schema(own)
        own.sql("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)", database=schema)
        own.sql("INSERT INTO t VALUES (3)", database=schema)
        feed = make_feed(tmp_path, {"-80": own}, schema, chunk_rows=ROWS)
        endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
        origin = originate("f", endpoints, lambda table: table.schema == schema, 0)
        state = origin.cut.shards["-80"]
        own.sql("FLUSH BINARY LOGS", f"INSERT INTO {schema}.t VALUES (4)")
        with connect(endpoints["-80"], state.position.server) as session:
            newest, size = list(log_files(session).items())[-1]

            def purged() -> bool:
                """A file is kept as long as a recovery needs it, up to a second after a rotation."""
                own.sql(f"PURGE BINARY LOGS TO '{newest}'")
                return len(log_files(session)) == 1

            until("the older files are gone", purged)
        target = Target(LakeWriter(tmp_path / "lake"), ("-80",), origin.epoch + 1, "x")
        chunk = Chunk("-80", origin.shapes[0].table, None, None, last=True)
        cut = LogOffset(newest, size)
        task = ChunkTask(endpoints["-80"], state, state.floor, cut, (chunk,), origin.shapes, target)
        with pytest.raises(CutMissed, match="its foreign keys are not known yet"):
            copy_chunks(task)
        task = replace(task, state=msgspec.structs.replace(state, keys=()))
        receipt = copy_chunks(task)
        assert [(one.chunk, one.rows) for one in receipt.copied] == [(chunk, 4)]
        xa = ("XA START 'x'", f"INSERT INTO {schema}.t VALUES (5)", "XA END 'x'", "XA PREPARE 'x'")
        own.sql(*xa)
        with pytest.raises(CutMissed, match=r"no longer on the server.*in a later epoch"):
            copy_chunks(task)
        own.sql("XA ROLLBACK 'x'")


def test_a_log_that_is_reset_behind_a_select_is_noticed(
    fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new log has groups of the same sizes, so that a dump may start at the old floor."""
    with chosen_server(server_id=138) as own:
        schema = fresh_schema(own)
        own.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", "RESET MASTER")
        own.sql(*(f"INSERT INTO {schema}.t VALUES ({key})" for key in (1, 2)))
        feed = make_feed(tmp_path, {"-80": own}, schema, chunk_rows=ROWS)
        endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
        origin = originate("f", endpoints, lambda table: table.schema == schema, 0)
        state = origin.cut.shards["-80"]

        keys = itertools.count(3)

        def reset_then(*args: Any) -> Any:
            rows = select_chunk(*args)
            own.sql("RESET MASTER", *(f"INSERT INTO {schema}.t VALUES ({next(keys)})" for _ in range(2)))
            return rows

        monkeypatch.setattr("catchment.readers.selected.select_chunk", reset_then)
        target = Target(LakeWriter(tmp_path / "lake"), ("-80",), origin.epoch + 1, "x")
        chunk = Chunk("-80", origin.shapes[0].table, None, None, last=True)
        at = state.position.at
        task = ChunkTask(endpoints["-80"], state, at, at, (chunk,), origin.shapes, target)
        assert read_group(replace(task, asks=False)).rows
        with pytest.raises(Diverged, match="was reset"):
            read_group(task)


def test_a_statement_that_names_several_tables_refuses_chunks_of_each(
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two tables of one form change places behind the cut: the SELECT of each shows rows of the other."""
    schema = fresh_schema(shard)
    for name, key in (("one", 1), ("two", 2)):
        shard.sql(
            f"CREATE TABLE {name} (id INT PRIMARY KEY)", f"INSERT INTO {name} VALUES ({key})", database=schema
        )
    shard.sql(f"INSERT INTO {schema}.two VALUES (3)")  # behind another group rows are proven visible
    feed = make_feed(tmp_path, {"-80": shard}, schema, chunk_rows=ROWS)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    origin = originate("f", endpoints, lambda table: table.schema == schema, 0)
    left = ["RENAME TABLE one TO x, two TO one, x TO two"]

    def select_behind_it(*args: Any) -> Any:
        while left:
            shard.sql(left.pop(), database=schema)
        return select_chunk(*args)

    monkeypatch.setattr("catchment.readers.selected.select_chunk", select_behind_it)
    monkeypatch.setattr("catchment.readers.selected.read_table", read_before(endpoints["-80"], origin.shapes))
    state = origin.cut.shards["-80"]
    chunks = tuple(Chunk("-80", shape.table, None, None, last=True) for shape in origin.shapes)
    target = Target(LakeWriter(tmp_path / "lake"), ("-80",), origin.epoch + 1, "x")
    at = state.position.at
    group = read_group(ChunkTask(endpoints["-80"], state, at, at, chunks, origin.shapes, target))
    assert not group.rows
    assert {chunk.table.name for chunk, _ in group.refused} == {"one", "two"}
    assert all("its definition changed at" in why for _, why in group.refused)


def read_before(endpoint: Endpoint, shapes: Iterable[TableShape]) -> Callable[[Session, TableId], Table]:
    """The tables as they are now, for a SELECT that follows what changes them: it locks none of them."""
    with connect(endpoint) as session:
        known = {shape.table: read_table(session, shape.table) for shape in shapes}
    return lambda session, table: known[table]


def test_no_chunk_is_read_before_the_foreign_keys_of_its_shard_are_known(tmp_path: Path) -> None:
    """As behind a log that was lost: else nobody would look which rows change in no log. No server is asked."""
    state = msgspec.structs.replace(records.manifest(1).cut.shards["-80"], keys=None)
    chunk = Chunk("-80", TableId("shop", "orders"), None, None, last=True)
    target = Target(LakeWriter(tmp_path / "lake"), ("-80",), 2, "x")
    at = state.position.at
    with pytest.raises(CutMissed, match="foreign keys are not known yet"):
        copy_chunks(ChunkTask(Endpoint("-80", "nowhere", 1, "u", ""), state, at, at, (chunk,), (), target))
