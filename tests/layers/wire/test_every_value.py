"""Every type: SELECT through us, the log through us, the server's own word and the lake agree (DESIGN section 6)."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from catchment.demo.server import PrivateServer
from catchment.model.epoch import Part
from catchment.model.image import OP, SIDE
from catchment.model.position import LogOffset
from catchment.model.table import Column, Kind, Table, TableId
from catchment.schema.shape import first_shape
from catchment.sink.delta.files import write_file
from catchment.sink.delta.layout import PART, arrow_schema, delta_schema
from catchment.sink.delta.log.actions import commit_info
from catchment.sink.delta.log.commit import create_table
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.tail.apply import add_action
from catchment.wire.cells import charsets
from catchment.wire.cells.types import logged_as_binary
from catchment.wire.keys.keys import hash_rows
from tests.layers.wire.answers import Session, columns_of, run, select
from tests.layers.wire.dumps import decoded, end_of_log, logs_generated, read_dump
from tests.layers.wire.every_value import Drawn, draw
from tests.layers.wire.odd_values import value_of

ROWS = 40
# In so many tables every character set has its turn; in the wide ones, each with two collations.
TABLES = {"mariadb": 4, "mysql": 6}
WIDE_TABLES, LONG_TABLES = 10, 320
VALUES_MIN, LONG_VALUES_MIN = 10_000, 1_000_000
_ROWS_PER_INSERT = 20
_WORDS = {
    Kind.BIT: "{} + 0",
    Kind.FLOAT: "{} + 0e0",
    Kind.DOUBLE: "{} + 0e0",
    **dict.fromkeys((Kind.TEXT, Kind.ENUM, Kind.SET), "HEX(CONVERT({} USING utf8mb4))"),
    Kind.JSON: "HEX(CAST({} AS CHAR CHARACTER SET utf8mb4))",
    **dict.fromkeys((Kind.BINARY, Kind.BLOB, Kind.GEOMETRY), "HEX({})"),
}
_NAMES = {"utf8": "utf8mb3"}  # of MySQL before 8.0.28


def collations_of(session: Session) -> list[tuple[str, str]]:
    """For every carried character set of the server two of its collations, the binary one among them."""
    found: dict[str, list[str]] = {}
    for charset, collation in run(
        session,
        "SELECT CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLLATIONS"
        " WHERE CHARACTER_SET_NAME IS NOT NULL AND ID IS NOT NULL ORDER BY 1, COLLATION_NAME LIKE '%bin', 2",
    ):
        found.setdefault(_NAMES.get(charset, charset), []).append(collation)
    carried = [(charset, names) for charset, names in found.items() if charsets.carried(charset)]
    return [(c, names[0]) for c, names in carried] + [(c, names[-1]) for c, names in carried]


def filled(session: Session, name: str, drawn: Drawn) -> tuple[Column, ...]:
    """Make and fill the table; then move every row."""
    schema, _, table = name.partition(".")
    columns = ", ".join(f"c{i} {case.definition}" for i, case in enumerate(drawn.cases))
    names = ", ".join(f"c{i}" for i in range(len(drawn.cases)))
    run(session, f"SET sql_mode = '{drawn.mode}'", f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})")
    for first in range(0, len(drawn.rows), _ROWS_PER_INSERT):
        some = enumerate(drawn.rows[first : first + _ROWS_PER_INSERT], first)
        rows = ", ".join(f"({row}, {', '.join(values)})" for row, values in some)
        run(session, f"INSERT IGNORE INTO {name} (id, {names}) VALUES {rows}")
    run(session, f"UPDATE IGNORE {name} SET id = id + 1000", "SET sql_mode = ''")
    return columns_of(session, schema, table)


def logged(server: PrivateServer, table: Table, start: LogOffset, side: int, op: int) -> pa.Table:
    options = {"wanted": [table.id], "kinds": {table.id: logged_as_binary(table.columns)}}
    images = decoded(read_dump(server, start), start, **options).take_images()
    assert {found.table.columns for found in images} == {table.columns}
    rows = pa.Table.from_batches([found.batch for found in images])
    chosen = pc.and_(pc.equal(rows[SIDE], side), pc.equal(rows[OP], op))
    return rows.filter(chosen).sort_by("id").select([column.name for column in table.columns])


def words(session: Session, table: Table) -> dict[str, list[Any]]:
    """What the server says of every value in text, in hexadecimal where text would round or convert."""
    asked = ", ".join(_WORDS.get(c.type.kind, "CAST({} AS CHAR)").format(c.name) for c in table.columns)
    rows = run(session, f"SELECT {asked} FROM {table.id} ORDER BY id")
    said = {}
    for i, column in enumerate(table.columns):
        texts = [None if row[i] is None else str(row[i]) for row in rows]
        said[column.name] = [None if text is None else _value(column, text) for text in texts]
    return said


def _value(column: Column, text: str) -> Any:
    if column.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        return float(text)
    if column.type.kind is Kind.JSON:
        return bytes.fromhex(text).decode()
    return value_of(column.type, text)


def in_lake(directory: Path, table: Table, rows: pa.Table) -> pa.Table:
    """The rows, written into a lake table and read back."""
    shape = first_shape(table)
    count = rows.num_rows
    marks = {
        "_shard": pa.array(["a"] * count),
        "_epoch": pa.array([1] * count),
        "_deleted": pa.nulls(count, pa.bool_()),
    }
    marked = pa.table({**marks, **{c.name: rows[c.name] for c in table.columns}}, schema=arrow_schema(shape))
    log = DeltaLog(directory)
    create_table(log, delta_schema(shape), [PART])
    file = write_file(directory, Part.BASE, "rows", [marked], arrow_schema(shape), table.key)
    log.put(log.newest(), commit_info("WRITE", 1), [add_action(file)])
    read = DeltaTable(str(directory)).to_pyarrow_table().sort_by("id")
    return read.select(rows.schema.names).cast(rows.schema)


def agree(
    server: PrivateServer, session: Session, schema: str, name: str, drawn: Drawn, directory: Path
) -> int:
    """Compare one table in all four ways; how many values it had."""
    start = end_of_log(server)
    columns = filled(session, f"{schema}.{name}", drawn)
    table = Table(TableId(schema, name), columns, ("id",))
    names = ", ".join(column.name for column in columns)
    found = select(session, f"SELECT {names} FROM {table.id} ORDER BY id", columns)[0].take_batch()
    selected = pa.Table.from_batches([found])
    inserted = logged(server, table, start, 1, 0)
    moved = logged(server, table, start, 1, 2)
    before = logged(server, table, start, 0, 2)
    said = words(session, table)
    lake = in_lake(directory, table, selected)
    cases = {"id": "id"} | {f"c{i}": case.definition for i, case in enumerate(drawn.cases)}
    for column in selected.column_names:
        values = selected[column].to_pylist()
        where = (cases[column], drawn.mode)
        assert values == said[column], where
        assert moved[column].to_pylist() == values, where
        assert lake[column].to_pylist() == values, where
        assert before[column].to_pylist() == inserted[column].to_pylist(), where
        if column != "id":
            assert inserted[column].to_pylist() == values, where
    assert selected.schema == moved.schema == inserted.schema == lake.schema
    # Bit by bit, which `==` does not compare of doubles.
    by_select, by_log = (hash_rows(rows, rows.schema.names).tolist() for rows in (selected, moved))
    assert by_select == by_log
    assert selected.num_rows == len(drawn.rows)
    return int(selected.num_rows) * len(drawn.cases)


def check(
    server: PrivateServer, schema: str, flavour: str, tables: int, directory: Path
) -> tuple[int, Counter[str]]:
    met: Counter[str] = Counter()
    values = 0
    with closing(server.connect(conv={}, init_command="SET time_zone = '+00:00'")) as session:
        collations = collations_of(session)
        for seed in range(tables):
            drawn = draw(seed, flavour, ROWS, collations, met, generated=logs_generated(server))
            values += agree(server, session, schema, f"t{seed}", drawn, directory / str(seed))
            run(session, f"DROP TABLE {schema}.t{seed}")
    scarce = {what: count for what, count in met.items() if ": " in what and count < tables}
    assert scarce == {}  # every odd value of every type in every table
    assert {f"charset {charset}" for charset, _ in collations} <= set(met)
    return values, met


SERVERS = [("shard", "mariadb"), ("mysql_server", "mysql")]
NEWER = [("mysql_97_server", "mysql-9"), ("mariadb_11_server", "mariadb-11")]


@pytest.mark.parametrize("wide", [False, pytest.param(True, marks=pytest.mark.wide)])
@pytest.mark.parametrize(("fixture", "flavour"), SERVERS)
def test_all_four_agree(
    fixture: str,
    flavour: str,
    wide: bool,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
) -> None:
    server = request.getfixturevalue(fixture)
    tables = WIDE_TABLES if wide else TABLES[flavour]
    values, met = check(server, fresh_schema(server), flavour, tables, tmp_path)
    assert values >= VALUES_MIN
    assert sum(": " in what for what in met) > 200


@pytest.mark.parametrize(("fixture", "flavour"), NEWER)
def test_newer_servers_agree_too(
    fixture: str,
    flavour: str,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
) -> None:
    """A table of all types; all character sets are in the long run."""
    server, met = request.getfixturevalue(fixture), Counter[str]()
    schema = fresh_schema(server)
    with closing(server.connect(conv={}, init_command="SET time_zone = '+00:00'")) as session:
        drawn = draw(0, flavour, ROWS, collations_of(session), met, generated=logs_generated(server))
        assert agree(server, session, schema, "t", drawn, tmp_path) > 60 * ROWS
    assert met["vector(3): extremes"] == 1


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("fixture", "flavour"), [*SERVERS, *NEWER])
def test_all_four_agree_on_a_million_values(
    fixture: str,
    flavour: str,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
) -> None:
    server = request.getfixturevalue(fixture)
    values, _ = check(server, fresh_schema(server), flavour, LONG_TABLES, tmp_path)
    assert values >= LONG_VALUES_MIN
