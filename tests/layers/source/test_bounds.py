"""Which keys a table is read by, which are refused, and that a chunk reads no more than its own rows."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.chunk import Bound
from catchment.model.errors import Unsupported
from catchment.model.shard import Copy
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.rewind.ranges import follows_log
from catchment.source.bounds import is_ranged
from catchment.source.session import Session, connect
from tests.layers.source.every_key import making, parts
from tests.layers.source.keyed import Keyed
from tests.world.servers.chosen import on_mysql


@pytest.fixture
def session(shard: PrivateServer) -> Iterator[Session]:
    with connect(Endpoint("s", shard.host, shard.port, "catchment", shard.password)) as opened:
        yield opened


REFUSED = {
    "zero date": ("k DATE", "('2020-01-01', 1), ('0000-00-00', 2)"),
    "no such day": ("k DATETIME(3)", "('2023-02-30 10:00:00', 2)"),
}


def test_a_key_that_is_null_in_the_lake_is_refused_by_name(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], subtests: pytest.Subtests
) -> None:
    schema = fresh_schema(shard)
    for number, (name, (column, rows)) in enumerate(REFUSED.items()):
        with subtests.test(name):
            table = TableId(schema, f"t{number}")
            shard.sql(
                "SET sql_mode = 'ALLOW_INVALID_DATES'",
                f"CREATE TABLE {table} ({column} PRIMARY KEY, v INT)",
                f"INSERT INTO {table} VALUES {rows}",
            )
            keyed = Keyed(session, table)
            with pytest.raises(Unsupported, match="'k' holds"):
                keyed.encoded(keyed.select())
    newest = keyed.newest()
    with pytest.raises(Unsupported, match="no calendar has"):
        follows_log(
            pa.table({"k": pa.array([0], pa.timestamp("us"))}), keyed.key, Copy(keyed.table.id, newest)
        )


def test_which_key_is_chosen(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
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
        assert Keyed(session, TableId(schema, f"t{number}")).table.key == key, columns
    for number, (columns, why) in enumerate(refused.items()):
        shard.sql(f"CREATE TABLE r{number} ({columns})", database=schema)
        with pytest.raises(Unsupported, match=why):
            Keyed(session, TableId(schema, f"r{number}"))


def test_a_decimal_of_more_digits_than_arrow_has_is_ordered_by_the_server(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    for name, ordered in (("decimal as text", False), ("decimal", True)):
        table = TableId(schema, name.replace(" ", "_"))
        shard.sql(*making(table, name, [1]))
        assert Keyed(session, table).key.ordered is ordered


RANGED = {
    "enum": ("k ENUM('z','a','m','b'), n INT", "1 + seq MOD 4, seq"),
    "enum in a key": ("u VARCHAR(9), k ENUM('z','a','m','b'), n INT", "'x', 1 + seq MOD 4, seq"),
    "set": ("k SET('z','a','m'), n INT", "seq MOD 8, seq"),
    "bit": ("k BIT(20)", "seq"),
}
ROWS, ROWS_OF_A_CHUNK = 4_000, 500


def test_a_chunk_reads_its_own_rows_alone(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], subtests: pytest.Subtests
) -> None:
    schema = fresh_schema(shard)
    for number, (name, (columns, values)) in enumerate(RANGED.items()):
        names = ", ".join(part.split(" ")[0] for part in parts(columns))
        shard.sql(
            f"CREATE TABLE t{number} ({columns}, v CHAR(100), PRIMARY KEY ({names}))",
            f"INSERT INTO t{number} SELECT {values}, 'x' FROM seq_1_to_{ROWS}",
            f"ANALYZE TABLE t{number}",
            database=schema,
        )
        with subtests.test(name):
            must_read_its_own_rows(Keyed(session, TableId(schema, f"t{number}")))


def must_read_its_own_rows(keyed: Keyed) -> None:
    with keyed.session.cursor() as cursor:

        def reads() -> int:
            cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
            return sum(int(count) for _, count in cursor.fetchall())

        lo: Bound | None = None
        found: list[int] = []
        read: list[int] = []
        while lo is not None or not found:
            hi = keyed.after(lo, None, ROWS_OF_A_CHUNK)
            before = reads()
            found.append(keyed.select(lo, hi).num_rows)
            read.append(reads() - before)
            lo = hi
    assert sum(found) == ROWS
    assert max(read) <= ROWS_OF_A_CHUNK + 100, read  # with those of SHOW itself
    assert is_ranged(keyed.key)
