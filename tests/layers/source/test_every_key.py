"""Every kind of key, each in a table of its own, on one server of each kind.

Walking the bounds, the chunks hold each row exactly once, while rows at their borders change; what lies in a chunk's
range is what its SELECT reads; and rows are found by their keys where these can be named.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import closing

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.chunk import Bound
from catchment.model.image import SIDE
from catchment.model.shard import Copy
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, TableId
from catchment.rewind.key_chunks import key_chunks, keys_of
from catchment.rewind.ranges import follows_log
from catchment.source.chosen_keys import can_be_named
from catchment.source.select import select_chunk
from catchment.source.session import Session, connect
from catchment.wire.cells.types import logged_as_binary
from catchment.wire.keys.keys import hash_rows
from tests.layers.source.every_key import KEYS, ON_MYSQL, UNNAMED, insertion, key_change, making
from tests.layers.source.keyed import Keyed
from tests.layers.wire.answers import Session as Writer
from tests.layers.wire.answers import run
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.world.servers.launch import PrivateMySQL


@pytest.fixture(params=["shard", pytest.param("mysql_server", marks=pytest.mark.wide)])
def server(request: pytest.FixtureRequest) -> PrivateServer:
    found: PrivateServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def session(server: PrivateServer) -> Iterator[Session]:
    with connect(Endpoint("s", server.host, server.port, "catchment", server.password)) as opened:
        yield opened


@pytest.fixture
def writer(server: PrivateServer) -> Iterator[Writer]:
    with closing(server.connect()) as opened:
        yield opened


def kinds_of(server: PrivateServer) -> list[str]:
    return list(ON_MYSQL if isinstance(server, PrivateMySQL) else KEYS)


def test_every_row_lies_in_one_chunk_and_is_found_by_its_key(
    server: PrivateServer,
    session: Session,
    writer: Writer,
    fresh_schema: Callable[..., str],
    subtests: pytest.Subtests,
) -> None:
    schema = fresh_schema(server)
    for number, name in enumerate(kinds_of(server)):
        with subtests.test(name):
            table = TableId(schema, f"t{number}")
            run(writer, *making(table, name, range(1, 61)))
            keyed = Keyed(session, table)
            must_lie_in_one_chunk(keyed)
            assert can_be_named(keyed.table) == (name not in UNNAMED)
            if name not in UNNAMED:
                must_be_found_by_keys(writer, keyed, random.Random(name))


def must_lie_in_one_chunk(keyed: Keyed) -> None:
    """Walking the bounds of a table of 60 rows gives each of them once, and says in which chunk it lies."""
    chunks = list(keyed.chunks(step=16))
    keys = keyed.encoded(pa.concat_tables([rows for _, rows in chunks]))
    assert len(keys) == len({keys[i] for i in range(len(keys))}) == 60
    assert len(chunks) >= 3
    whole = keyed.select()
    assert whole.equals(pa.concat_tables([rows for _, rows in chunks]).combine_chunks())
    for reach, rows in chunks:
        found = whole.filter(pa.array(keyed.within(whole, reach)))
        assert keyed.content(found) == keyed.content(rows), reach


def must_be_found_by_keys(writer: Writer, keyed: Keyed, chance: random.Random) -> None:
    """Some rows of 60 are asked for, of which some have gone."""
    table = keyed.table
    asked = keyed.select().take(pa.array(chance.sample(range(60), 25)))
    run(writer, f"DELETE FROM {table.id} WHERE filler % 5 = 1")
    chunks = list(key_chunks(ShardTable("s", table.id), asked.select(list(table.key)), 7))
    assert [chunk.keys != b"" for chunk in chunks] == [True] * 4
    found = pa.concat_tables([select_chunk(keyed.session, table, chunk) for chunk in chunks])
    left = {n for n in asked["filler"].to_pylist() if n % 5 != 1}
    assert sorted(found["filler"].to_pylist()) == sorted(left)
    told = keys_of(chunks)
    assert told is not None
    assert told.equals(asked.select(list(table.key)).combine_chunks())


def test_rows_change_at_the_borders_of_chunks(
    server: PrivateServer,
    session: Session,
    writer: Writer,
    fresh_schema: Callable[..., str],
    subtests: pytest.Subtests,
) -> None:
    """Chunks and the log since before the first SELECT give what a SELECT of all rows gives afterwards."""
    schema = fresh_schema(server)
    begun = end_of_log(server)
    walked: dict[str, Walked] = {}
    for number, name in enumerate(kinds_of(server)):
        with subtests.test(name):
            table = TableId(schema, f"t{number}")
            run(writer, *making(table, name, range(2, 61, 2)))
            walked[name] = Walked(Keyed(session, table), name, writer)
    tables = [one.keyed.table for one in walked.values()]
    logged = decoded(
        read_dump(server, begun),
        begun,
        wanted=[table.id for table in tables],
        keys={table.id: table.key for table in tables},
        kinds={table.id: logged_as_binary(table.columns) for table in tables},
    ).take_images()
    for name, one in walked.items():
        with subtests.test(name, by="the log"):
            taken = [images for images in logged if images.table.id == one.keyed.table.id]
            assert {images.table.key for images in taken} == {one.keyed.table.key}
            images = pa.Table.from_batches([images.batch for images in taken]).combine_chunks()
            one.must_follow(images.slice(one.inserted))


class Walked:
    """A table of 30 rows whose chunks were read while rows at their borders changed."""

    def __init__(self, keyed: Keyed, name: str, writer: Writer) -> None:
        self.keyed = keyed
        self.newest: Bound | None = keyed.newest()
        self.inserted = keyed.select().num_rows
        self.copied: dict[bytes, int] = {}
        self.changed = 0
        chance, table = random.Random(name), keyed.table.id
        for _, rows in keyed.chunks(step=7):
            self.copied |= keyed.content(rows)
            border = rows["filler"].to_pylist()[-1] if rows.num_rows else 30
            near = [max(1, border + step) for step in (-2, -1, 0, 1, 2)]
            self.changed += len(near)
            run(
                writer,
                f"UPDATE {table} SET other = other + 1 WHERE filler IN ({near[2]}, {near[4]})",
                insertion(table, name, [near[1], near[3]]),
                f"DELETE FROM {table} WHERE filler = {chance.choice(near)}",
                key_change(table, name, chance.choice(near), 60 + self.changed % 3),
                f"DELETE FROM {table} WHERE filler = {near[2]}" if chance.random() < 0.3 else "DO 0",
            )
        assert self.changed >= 20

    def must_follow(self, images: pa.Table) -> None:
        """What was copied and the log since then lead to the rows of now."""
        keyed, copied = self.keyed, self.copied
        followed = follows_log(images, keyed.key, Copy(keyed.table.id, self.newest, self.newest))
        assert followed is None or followed.all()  # copied, or born later
        sides, keys = images[SIDE].to_pylist(), keyed.encoded(images)
        hashes = hash_rows(images, [column.name for column in keyed.table.columns]).tolist()
        for i, side in enumerate(sides):
            if side:
                copied[keys[i]] = hashes[i]
            else:
                copied.pop(keys[i], None)
        assert copied == keyed.content(keyed.select())
        assert images.num_rows > self.changed
