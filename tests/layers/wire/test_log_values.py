"""Images of rows: all types, all operations, both ways to treat BEFORE images."""

import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CorruptLog, Undescribed
from catchment.model.image import INTERNAL, OP, SEQ, SIDE
from catchment.model.position import LogOffset
from catchment.model.table import Column, Kind, TableId
from catchment.wire.cells.types import logged_as_binary
from catchment.wire.keys.keys import hash_rows
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.facts import PartialImage
from tests.layers.wire.answers import Session, run, select
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.odd_values import ODD, fill, said

BEFORE, AFTER = 0, 1
INSERT, DELETE, UPDATE = 0, 1, 2


def images_of(decoder: LogDecoder) -> pa.Table:
    batches = [images.batch for images in decoder.take_images()]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches)


def only(images: pa.Table, side: int, op: int) -> pa.Table:
    chosen = images.filter(pc.and_(pc.equal(images[SIDE], side), pc.equal(images[OP], op)))
    return chosen.drop_columns(list(INTERNAL))


def marks(images: pa.Table) -> list[tuple[Any, ...]]:
    names = INTERNAL
    return list(zip(*(images[name].to_pylist() for name in names), strict=True))


def bits(column: Column, values: list[Any]) -> list[Any]:
    """Numbers with a point as their bytes, for `==` does not tell all of them apart."""
    form = {Kind.FLOAT: "<f", Kind.DOUBLE: "<d"}.get(column.type.kind)
    return [None if value is None else struct.pack(form, value) for value in values] if form else values


def inserted_numbers(column: Column) -> list[float | None]:
    """What `fill` inserts into a column of such numbers. The server stores -0.0 as 0.0."""
    literals = list(ODD.values())[int(column.name[1:])]
    return [*(float(literals[row % len(literals)]) + 0.0 for row in range(9)), None]


def test_odd_values_in_all_images(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    """And in an answer to SELECT."""
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    columns = fill(session, schema)
    odd, kinds = TableId(schema, "odd"), {TableId(schema, "odd"): logged_as_binary(columns)}
    text = {column.name: said(session, schema, column) for column in columns}
    names = ", ".join(column.name for column in columns)
    decoder, _ = select(session, f"SELECT {names} FROM {schema}.odd ORDER BY id", columns)
    assert (decoder.rows, decoder.warning_count) == (10, 0)
    assert decoder.status & 0x0002  # SERVER_STATUS_AUTOCOMMIT
    selected = decoder.take_batch()
    selected.validate(full=True)
    for column in columns:
        values = selected.column(column.name).to_pylist()
        if column.type.kind in (Kind.FLOAT, Kind.DOUBLE):
            assert bits(column, values) == bits(column, inserted_numbers(column))
        else:
            assert values == text[column.name], column
    run(
        session,
        f"UPDATE {schema}.odd SET id = id + 1000 ORDER BY id",
        f"DELETE FROM {schema}.odd ORDER BY id",
    )
    raw = read_dump(shard, start)
    images = images_of(decoded(raw, start, wanted=[odd], kinds=kinds))
    assert images.num_rows == 40
    inserted = only(images, AFTER, INSERT)
    for column in columns:
        values = inserted[column.name].to_pylist()
        assert bits(column, values) == bits(column, selected.column(column.name).to_pylist()), column
    assert (
        hash_rows(inserted, inserted.schema.names).tolist()
        == hash_rows(selected, selected.schema.names).tolist()
    )
    assert only(images, BEFORE, UPDATE).equals(inserted)
    moved = only(images, AFTER, UPDATE)
    assert moved["id"].to_pylist() == [1000 + value for value in inserted["id"].to_pylist()]
    assert moved.drop_columns(["id"]).equals(inserted.drop_columns(["id"]))
    assert only(images, BEFORE, DELETE).equals(moved)
    assert images[SEQ].to_pylist() == list(range(40))

    short = images_of(decoded(raw, start, wanted=[odd], kinds=kinds, before="key"))
    assert only(short, AFTER, INSERT).equals(inserted)
    assert only(short, AFTER, UPDATE).equals(moved)
    for op, whole in ((UPDATE, inserted), (DELETE, moved)):
        before = only(short, BEFORE, op)
        assert before["id"].equals(whole["id"])
        assert all(before[name].null_count == 10 for name in before.column_names if name != "id")


@pytest.fixture
def keyed(session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]) -> tuple[str, LogOffset]:
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    run(
        session,
        f"CREATE TABLE {schema}.k (a int, v varchar(9), b varchar(9) charset latin1, PRIMARY KEY (b, a))",
        f"CREATE TABLE {schema}.n (a int, v varchar(9))",
        f"INSERT INTO {schema}.k VALUES (1, 'x', 'é'), (2, NULL, 'q')",
        f"UPDATE {schema}.k SET v = 'changed'",
        f"UPDATE {schema}.k SET a = a + 10 WHERE a = 2",
        f"UPDATE {schema}.k SET b = 'É' WHERE a = 1",
        f"INSERT INTO {schema}.n VALUES (1, 'x')",
        f"UPDATE {schema}.n SET v = 'y'",
    )
    return schema, start


def test_before_images_of_the_key(keyed: tuple[str, LogOffset], shard: PrivateServer) -> None:
    schema, start = keyed
    raw = read_dump(shard, start)
    images = images_of(decoded(raw, start, wanted=[TableId(schema, "k")], before="key"))
    assert list(zip(*images.to_pydict().values(), strict=True)) == [
        (1, "x", "é", AFTER, INSERT, 0, 2),
        (2, None, "q", AFTER, INSERT, 1, 2),
        (1, "changed", "é", AFTER, UPDATE, 2, 3),
        (2, "changed", "q", AFTER, UPDATE, 3, 3),
        (2, None, "q", BEFORE, UPDATE, 4, 4),
        (12, "changed", "q", AFTER, UPDATE, 5, 4),
        (1, None, "é", BEFORE, UPDATE, 6, 5),
        (1, "changed", "É", AFTER, UPDATE, 7, 5),
    ]


def test_a_table_without_a_key(keyed: tuple[str, LogOffset], shard: PrivateServer) -> None:
    schema, start = keyed
    table = TableId(schema, "n")
    raw = read_dump(shard, start)
    whole = decoded(raw, start, wanted=[table], before="key").take_images()[0]
    assert whole.table.key == ()
    assert [row["v"] for row in whole.batch.to_pylist()] == ["x", "x", "y"]
    told = decoded(raw, start, wanted=[table], before="key", keys={table: ("a",)}).take_images()[0]
    assert told.table.key == ("a",)
    assert [row["v"] for row in told.batch.to_pylist()] == ["x", "y"]


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_incomplete_images(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], image: str
) -> None:
    schema = fresh_schema(shard)
    run(session, f"CREATE TABLE {schema}.t (id int PRIMARY KEY, b blob, v int)")
    run(session, f"INSERT INTO {schema}.t VALUES (1, 'b', 2)")
    start = end_of_log(shard)
    run(
        session,
        f"SET binlog_row_image = {image}",
        f"UPDATE {schema}.t SET v = 3",
        f"INSERT INTO {schema}.t (id) VALUES (4)",
        "SET binlog_row_image = FULL",
        f"DELETE FROM {schema}.t WHERE id = 1",
    )
    raw = read_dump(shard, start)
    decoder = decoded(raw, start, wanted=[TableId(schema, "t")])
    lacking = [fact for fact in decoder.facts if isinstance(fact, PartialImage)]
    assert [(fact.group, fact.table.name) for fact in lacking] == [(0, "t"), (1, "t")][: len(lacking)]
    assert len(lacking) >= 1
    assert [row[OP] for row in images_of(decoder).to_pylist()][-1] == DELETE
    assert decoded(raw, start, wanted=[]).facts == []


def test_no_full_metadata(session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]) -> None:
    with PrivateServer(server_id=9, settings={"binlog_row_metadata": "MINIMAL"}) as other:
        start = end_of_log(other)
        other.sql("CREATE DATABASE m", "CREATE TABLE m.t (a int)", "INSERT INTO m.t VALUES (1)")
        raw = read_dump(other, start)
    with pytest.raises(Undescribed, match="set binlog_row_metadata=FULL"):
        decoded(raw, start, wanted=[TableId("m", "t")])
    assert len(decoded(raw, start, wanted=[]).take_groups()) == 3


def test_large_values_and_compressed_events(shard: PrivateServer) -> None:
    with PrivateServer(
        server_id=9,
        settings={"log_bin_compress": "ON", "log_bin_compress_min_len": 10, "max_allowed_packet": "128M"},
    ) as other:
        start = end_of_log(other)
        other.sql(
            "CREATE DATABASE m",
            "CREATE TABLE m.t (id int PRIMARY KEY, b longblob, v varchar(300))",
            "INSERT INTO m.t VALUES (1, REPEAT('x', 17000000), REPEAT('y', 300))",
            "INSERT INTO m.t VALUES (2, REPEAT('ab', 500), 'short'), (3, NULL, NULL)",
            "UPDATE m.t SET v = REPEAT('z', 200) WHERE id > 1",
            "DELETE FROM m.t WHERE id = 3",
        )
        other.sql("SET GLOBAL log_bin_compress = OFF")
        other.sql("INSERT INTO m.t VALUES (4, REPEAT(UNHEX('00FF10'), 6000000), '')")
        raw = read_dump(other, start)
    images = images_of(decoded(raw, start, wanted=[TableId("m", "t")]))
    rows = images.to_pylist()
    assert [(r["id"], r[SIDE], r[OP]) for r in rows] == [
        (1, 1, 0), (2, 1, 0), (3, 1, 0), (2, 0, 2), (2, 1, 2), (3, 0, 2), (3, 1, 2), (3, 0, 1), (4, 1, 0),
    ]  # fmt: skip
    assert rows[0]["b"] == b"x" * 17_000_000
    assert rows[0]["v"] == "y" * 300
    assert rows[1]["b"] == b"ab" * 500
    assert rows[4]["v"] == "z" * 200
    assert rows[8]["b"] == b"\x00\xff\x10" * 6_000_000
    for packet_types in (166, 167, 168):
        assert any(packet_types == raw[i + 9] for i in heads(raw)), "the server did not compress"


def heads(raw: bytes) -> list[int]:
    found = []
    at = 0
    while at < len(raw):
        found.append(at)
        size = int.from_bytes(raw[at : at + 3], "little")
        while size == 0xFFFFFF:
            at += size + 4
            size = int.from_bytes(raw[at : at + 3], "little")
        at += size + 4
    return found[:-1]


@pytest.mark.parametrize("name", [b"seq ", b"se\0q"])
def test_a_column_with_a_name_that_no_server_takes_is_refused(
    shard: PrivateServer, fresh_schema: Callable[..., str], name: bytes
) -> None:
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, seqs INT)", "INSERT INTO t VALUES (1, 2)", database=schema)
    raw = read_dump(shard, start)
    head, at, behind = raw.rpartition(b"seqs")
    assert at
    wanted = [TableId(schema, "t")]
    assert decoded(raw, start, wanted=wanted).take_images()
    with pytest.raises(CorruptLog, match=r"names a column .*: no server takes such a name"):
        decoded(head + name + behind, start, wanted=wanted, verify_checksum=False)
