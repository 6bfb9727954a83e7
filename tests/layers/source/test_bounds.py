"""Chunks of every kind of key: walking the bounds, the chunks hold each row exactly once, while rows at their
borders change; and what lies in a chunk's range is what its SELECT reads."""

import random
from collections.abc import Callable, Iterator
from contextlib import closing

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.chunk import Bound, Chunk, chunk_key
from catchment.model.errors import Unsupported
from catchment.model.image import SIDE
from catchment.model.position import LogOffset
from catchment.model.shard import Copy
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.rewind.ranges import covered, follows_log
from catchment.source.ask_ranges import inside
from catchment.source.bounds import is_ranged, key_after, newest_key
from catchment.source.catalog import read_table
from catchment.source.select import select_chunk
from catchment.source.session import connect
from catchment.wire.cells.types import logged_as_binary
from catchment.wire.keys.keys import Keys, encode, hash_rows
from tests.layers.source.every_key import CASES, ON_MYSQL, insertion, key_change, make_table, parts
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.world.servers.chosen import on_mysql
from tests.world.servers.launch import PrivateMySQL

Range = tuple[Bound | None, Bound | None]
STEP = 7


class Source:
    """A table on a server, read by the product's code."""

    def __init__(self, server: PrivateServer, table: TableId) -> None:
        self.endpoint = Endpoint("s", server.host, server.port, "catchment", server.password)
        self.connection = connect(self.endpoint)
        self.table = read_table(self.connection, table)
        self.key = chunk_key(self.table)

    def newest(self) -> Bound | None:
        return newest_key(self.connection, self.table.id, self.key)

    def select(self, lo: Bound | None, hi: Bound | None) -> pa.Table:
        return select_chunk(self.connection, self.table, Chunk("s", self.table.id, lo, hi)).combine_chunks()

    def chunks(self) -> Iterator[tuple[Range, pa.Table]]:
        """Ranges and rows, walking the index in steps up to the key that was the largest at the start."""
        end, lo = self.newest(), None
        while True:
            hi = key_after(self.connection, self.table.id, self.key, lo, end, STEP)
            yield (lo, hi or end), self.select(lo, hi or end)
            if hi is None:
                return
            lo = hi

    def encoded(self, rows: pa.Table) -> Keys:
        return encode(rows, self.table.key)

    def within(self, rows: pa.Table, reach: Range) -> list[bool]:
        """Which rows lie in a range, as the product decides it for images of the log."""
        mask = covered(rows, self.key, [reach])
        if mask is None:
            mask = inside(self.connection, self.table, rows, [reach])
        return [bool(found) for found in mask]

    def content(self, rows: pa.Table) -> dict[bytes, int]:
        """A hash of each row by its key."""
        keys, hashes = self.encoded(rows), hash_rows(rows, rows.schema.names).tolist()
        return {keys[i]: hashes[i] for i in range(len(keys))}


@pytest.fixture
def source(shard: PrivateServer, fresh_schema: Callable[..., str]) -> Iterator[Callable[..., Source]]:
    made = []

    def make(name: str, *, rows: list[int]) -> Source:
        schema = fresh_schema(shard)
        make_table(shard, schema, name, rows)
        made.append(Source(shard, TableId(schema, "t")))
        return made[-1]

    yield make
    for one in made:
        one.connection.close()


@pytest.mark.parametrize("name", CASES)
def test_every_row_lies_in_exactly_one_chunk(name: str, source: Callable[..., Source]) -> None:
    one_chunk_for_each_row(source(name, rows=list(range(1, 61))))


@pytest.mark.parametrize("name", ON_MYSQL)
def test_every_row_lies_in_exactly_one_chunk_on_mysql(
    name: str, mysql_server: PrivateMySQL, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(mysql_server)
    make_table(mysql_server, schema, name, list(range(1, 61)))
    table = Source(mysql_server, TableId(schema, "t"))
    with closing(table.connection):
        one_chunk_for_each_row(table)


def one_chunk_for_each_row(table: Source) -> None:
    """Walking the bounds of a table of 60 rows gives each of them once, and says in which chunk it lies."""
    chunks = list(table.chunks())
    keys = table.encoded(pa.concat_tables([rows for _, rows in chunks]))
    assert len(keys) == len({keys[i] for i in range(len(keys))}) == 60
    assert len(chunks) >= 3
    whole = table.select(None, None)
    assert whole.equals(pa.concat_tables([rows for _, rows in chunks]).combine_chunks())
    for reach, rows in chunks:
        found = whole.filter(pa.array(table.within(whole, reach)))
        assert table.content(found) == table.content(rows), reach


@pytest.mark.parametrize("name", CASES)
def test_rows_change_at_the_borders_of_chunks(
    name: str, source: Callable[..., Source], shard: PrivateServer
) -> None:
    borders_change(name, source(name, rows=list(range(2, 61, 2))), shard)


@pytest.mark.parametrize("name", ON_MYSQL)
def test_rows_change_at_the_borders_of_chunks_on_mysql(
    name: str, mysql_server: PrivateMySQL, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(mysql_server)
    make_table(mysql_server, schema, name, list(range(2, 61, 2)))
    table = Source(mysql_server, TableId(schema, "t"))
    with closing(table.connection):
        borders_change(name, table, mysql_server)


def borders_change(name: str, table: Source, server: PrivateServer) -> None:
    """Chunks and the log since before the first SELECT give what a SELECT of all rows gives afterwards."""
    newest, begun = table.newest(), end_of_log(server)
    copied: dict[bytes, int] = {}
    chance, changed = random.Random(name), 0
    for _, rows in table.chunks():
        copied |= table.content(rows)
        border = rows["filler"].to_pylist()[-1] if rows.num_rows else 30
        near = [max(1, border + step) for step in (-2, -1, 0, 1, 2)]
        changed += len(near)
        server.sql(
            f"UPDATE t SET other = other + 1 WHERE filler IN ({near[2]}, {near[4]})",
            insertion(name, [near[1], near[3]]),
            f"DELETE FROM t WHERE filler = {chance.choice(near)}",
            key_change(name, chance.choice(near), 60 + changed % 3),
            f"DELETE FROM t WHERE filler = {near[2]}" if chance.random() < 0.3 else "DO 0",
            database=table.table.id.schema,
        )
    assert changed >= 20
    images = _images(server, table.table, begun)
    followed = follows_log(images, table.key, Copy(table.table.id, newest, newest))
    assert followed is None or followed.all()  # copied, or born later
    sides, keys = images[SIDE].to_pylist(), table.encoded(images)
    hashes = hash_rows(images, [c.name for c in table.table.columns]).tolist()
    for i, side in enumerate(sides):
        if side:
            copied[keys[i]] = hashes[i]
        else:
            copied.pop(keys[i], None)
    assert copied == table.content(table.select(None, None))
    assert images.num_rows > changed


def _images(shard: PrivateServer, table: Table, start: LogOffset) -> pa.Table:
    options = {"keys": {table.id: table.key}, "kinds": {table.id: logged_as_binary(table.columns)}}
    taken = decoded(read_dump(shard, start), start, wanted=[table.id], **options).take_images()
    assert {images.table.key for images in taken} == {table.key}
    return pa.Table.from_batches([images.batch for images in taken]).combine_chunks()


REFUSED = {
    "zero date": ("k DATE", "INSERT INTO t VALUES ('2020-01-01', 1), ('0000-00-00', 2)", "'k' holds"),
    "no such day": ("k DATETIME(3)", "INSERT INTO t VALUES ('2023-02-30 10:00:00', 2)", "'k' holds"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_key_that_is_null_in_the_lake_is_refused_by_name(
    name: str, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    column, insert, said = REFUSED[name]
    shard.sql(
        "SET sql_mode = 'ALLOW_INVALID_DATES'",
        f"CREATE TABLE t ({column} PRIMARY KEY, v INT)",
        insert,
        database=schema,
    )
    table = Source(shard, TableId(schema, "t"))
    with closing(table.connection):
        with pytest.raises(Unsupported, match=said):
            table.encoded(table.select(None, None))
        if name == "no such day":
            newest = table.newest()
            with pytest.raises(Unsupported, match="no calendar has"):
                follows_log(
                    pa.table({"k": pa.array([0], pa.timestamp("us"))}),
                    table.key,
                    Copy(table.table.id, newest),
                )


def test_which_key_is_chosen(shard: PrivateServer, fresh_schema: Callable[..., str]) -> None:
    schema = fresh_schema(shard)
    chosen = {
        "a INT NOT NULL, b INT NOT NULL, UNIQUE KEY zz (a), UNIQUE KEY yy (b, a)": ("a",),
        "a INT, b INT NOT NULL, UNIQUE KEY aa (a), UNIQUE KEY bb (b)": ("b",),
        "a VARCHAR(9) NOT NULL, b INT NOT NULL, UNIQUE KEY aa (a(3)), UNIQUE KEY bb (b)": ("b",),
        "a VARCHAR(9), b INT NOT NULL, PRIMARY KEY (a(3)), UNIQUE KEY aa (b)": ("a",),
        **({} if on_mysql() else {"a BLOB NOT NULL, UNIQUE KEY (a)": ("a",)}),
    }
    refused = {
        "a INT, UNIQUE KEY (a)": "no primary key",
        "a ENUM('x','') PRIMARY KEY": "empty label",
        "a VARCHAR(9) NOT NULL, UNIQUE KEY (a(3))": "no primary key",
    }
    for number, (columns, key) in enumerate(chosen.items()):
        shard.sql(f"CREATE TABLE t{number} ({columns})", database=schema)
        source = Source(shard, TableId(schema, f"t{number}"))
        with closing(source.connection):
            assert source.table.key == key, columns
    for number, (columns, why) in enumerate(refused.items()):
        shard.sql(f"CREATE TABLE r{number} ({columns})", database=schema)
        with pytest.raises(Unsupported, match=why):
            Source(shard, TableId(schema, f"r{number}"))


def test_a_decimal_of_more_digits_than_arrow_has_is_ordered_by_the_server(
    source: Callable[..., Source],
) -> None:
    assert not source("decimal as text", rows=[1]).key.ordered
    assert source("decimal", rows=[1]).key.ordered


RANGED = {
    "enum": ("k ENUM('z','a','m','b'), n INT", "1 + seq MOD 4, seq"),
    "enum in a key": ("u VARCHAR(9), k ENUM('z','a','m','b'), n INT", "'x', 1 + seq MOD 4, seq"),
    "set": ("k SET('z','a','m'), n INT", "seq MOD 8, seq"),
    "bit": ("k BIT(20)", "seq"),
}


@pytest.mark.parametrize("name", RANGED)
def test_a_chunk_reads_its_own_rows_alone(
    name: str, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema, rows, step = fresh_schema(shard), 4_000, 500
    columns, values = RANGED[name]
    names = ", ".join(part.split(" ")[0] for part in parts(columns))
    shard.sql(
        f"CREATE TABLE t ({columns}, v CHAR(100), PRIMARY KEY ({names}))",
        f"INSERT INTO t SELECT {values}, 'x' FROM seq_1_to_{rows}",
        "ANALYZE TABLE t",
        database=schema,
    )
    table = Source(shard, TableId(schema, "t"))
    with closing(table.connection), table.connection.cursor() as cursor:

        def reads() -> int:
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
            return sum(int(count) for _, count in cursor.fetchall())

        lo: Bound | None = None
        found: list[int] = []
        read: list[int] = []
        while lo is not None or not found:
            hi = key_after(table.connection, table.table.id, table.key, lo, None, step)
            before = reads()
            found.append(table.select(lo, hi).num_rows)
            read.append(reads() - before)
            lo = hi
    assert sum(found) == rows
    assert max(read) <= step + 100, read  # with those of SHOW itself
    assert is_ranged(table.key)
