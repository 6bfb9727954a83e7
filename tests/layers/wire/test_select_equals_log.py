"""A value read by SELECT and the same value read from the log are equal, bit by bit (DESIGN section 6)."""

import math
import random
import struct
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from catchment.demo.server import PrivateServer
from catchment.model.image import SIDE
from catchment.model.position import LogOffset
from catchment.model.table import Column, TableId
from catchment.wire.cells.types import logged_as_binary
from catchment.wire.keys.keys import hash_rows
from tests.layers.wire.answers import Session, columns_of, run, select
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.odd_values import ODD, fill

Literal = Callable[[random.Random], str]


def whole(low: int, high: int) -> Literal:
    return lambda chance: str(chance.choice([low, high, chance.randint(low, high), chance.randint(0, 9)]))


def number(digits: int, scale: int) -> Literal:
    def literal(chance: random.Random) -> str:
        value = chance.randrange(10 ** chance.randint(0, digits))
        return f"{chance.choice('-+')}{value // 10**scale}.{value % 10**scale:0{scale}}"

    return literal


def real(form: str) -> Literal:
    def literal(chance: random.Random) -> str:
        while True:
            (value,) = struct.unpack(form, chance.randbytes(struct.calcsize(form)))
            if math.isfinite(value):
                return repr(value)

    return literal


def moment(low: int, high: int) -> Literal:
    return lambda chance: (
        f"from_unixtime(0) + INTERVAL {chance.randint(low, high)} SECOND + INTERVAL"
        f" {chance.randrange(10**6)} MICROSECOND"
    )


def text(charset: str, longest: int) -> Literal:
    alphabet = (
        "aé€ ߿ࠀ\uffff\U00010000\U0010ffff'\\" if charset == "utf8mb4" else bytes(range(256)).decode("latin1")
    )
    codec = "utf-8" if charset == "utf8mb4" else "latin1"

    def literal(chance: random.Random) -> str:
        value = "".join(chance.choices(alphabet, k=chance.randint(0, longest)))
        return f"CONVERT(x'{value.encode(codec).hex()}' USING {charset})"

    return literal


RANDOM: dict[str, Literal] = {
    "tinyint": whole(-(2**7), 2**7 - 1),
    "smallint unsigned": whole(0, 2**16 - 1),
    "mediumint": whole(-(2**23), 2**23 - 1),
    "int unsigned": whole(0, 2**32 - 1),
    "bigint": whole(-(2**63), 2**63 - 1),
    "bigint unsigned": whole(0, 2**64 - 1),
    "bit(17)": whole(0, 2**17 - 1),
    "float": real("<f"),
    "double": real("<d"),
    "decimal(9,4)": number(9, 4),
    "decimal(38,10)": number(38, 10),
    "decimal(65,30)": number(65, 30),
    "time(6)": lambda chance: (
        f"SEC_TO_TIME({chance.randint(-3_020_398, 3_020_398)}.{chance.randrange(10**6)})"
    ),
    "time(3)": lambda chance: (
        f"SEC_TO_TIME({chance.randint(-3_020_398, 3_020_398)}.{chance.randrange(10**3)})"
    ),
    "date": moment(-62_135_596_800, 253_402_214_400),
    "datetime(6)": moment(-62_135_596_800, 253_402_214_400),
    "datetime(1)": moment(-62_135_596_800, 253_402_214_400),
    "timestamp(4) null": moment(1, 2**31 - 2),
    "char(20)": text("utf8mb4", 20),
    "varchar(400)": text("utf8mb4", 400),
    "text character set latin1": text("latin1", 300),
    "char(30) character set latin1": text("latin1", 30),
    "varbinary(300)": lambda chance: f"x'{chance.randbytes(chance.randint(0, 300)).hex()}'",
    "binary(20)": lambda chance: f"x'{chance.choice(['', '00', chance.randbytes(19).hex() + '00'])}'",
    "longblob": lambda chance: f"x'{chance.randbytes(chance.randint(0, 2000)).hex()}'",
}


def logged_rows(
    shard: PrivateServer, table: TableId, columns: tuple[Column, ...], start: LogOffset
) -> pa.Table:
    """The after images of the table since `start`, by id."""
    kinds = {table: logged_as_binary(columns)}
    images = decoded(read_dump(shard, start), start, wanted=[table], kinds=kinds).take_images()
    assert {found.table.columns for found in images} == {columns}
    rows = pa.Table.from_batches([found.batch for found in images])
    return rows.filter(pc.equal(rows[SIDE], 1)).sort_by("id").select([column.name for column in columns])


def check_equal(logged: pa.Table, selected: pa.RecordBatch, kinds: list[str]) -> None:
    assert logged.schema.equals(selected.schema)
    assert logged.num_rows == selected.num_rows
    for name, kind in zip(selected.schema.names[1:], kinds, strict=True):
        assert logged[name].to_pylist() == selected[name].to_pylist(), kind
    names = selected.schema.names
    assert hash_rows(logged, names).tolist() == hash_rows(selected, names).tolist()


def test_odd_values_of_all_types(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    columns = fill(session, schema)
    names = ", ".join(column.name for column in columns)
    selected = select(session, f"SELECT {names} FROM {schema}.odd ORDER BY id", columns)[0].take_batch()
    check_equal(logged_rows(shard, TableId(schema, "odd"), columns, start), selected, list(ODD))


def test_random_values(session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]) -> None:
    schema = fresh_schema(shard)
    start = end_of_log(shard)
    chance = random.Random(4)
    definitions = ", ".join(f"c{i} {kind}" for i, kind in enumerate(RANDOM))
    rows = [
        ", ".join("NULL" if chance.random() < 0.1 else literal(chance) for literal in RANDOM.values())
        for _ in range(500)
    ]
    values = ", ".join(f"({row}, {literals})" for row, literals in enumerate(rows))
    run(
        session,
        f"CREATE TABLE {schema}.r (id int PRIMARY KEY, {definitions})",
        f"INSERT INTO {schema}.r VALUES {values}",
    )
    columns = columns_of(session, schema, "r")
    selected = select(session, f"SELECT * FROM {schema}.r ORDER BY id", columns)[0].take_batch()
    assert selected.num_rows == 500
    assert max(selected.column(name).null_count for name in selected.schema.names) < 100  # not all NULL
    check_equal(logged_rows(shard, TableId(schema, "r"), columns, start), selected, list(RANDOM))
