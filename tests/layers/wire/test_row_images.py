"""The same cases of every type with row images FULL, NOBLOB and MINIMAL, with every binlog_row_metadata, packed
and not, on every server.

What an image has is what FULL has; what it lacks is told; and NOBLOB leaves out what the catalog says of it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.definition import Definition
from catchment.model.image import INTERNAL, OP, SEQ, SIDE
from catchment.model.position import LogOffset
from catchment.model.source import Endpoint
from catchment.model.table import Column, Table, TableId
from catchment.source.catalog import left_out_columns, read_definition
from catchment.source.session import connect
from catchment.wire.cells.types import logged_as_binary
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.facts import PartialImage
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import decoded, end_of_log, logs_generated, read_dump
from tests.layers.wire.events import events_of, kind_of
from tests.layers.wire.every_value import Drawn, draw
from tests.layers.wire.test_every_value import collations_of, filled

_ROWS = 30
_PAYLOAD, _ROWS_PACKED = 40, range(166, 172)
_LEVELS = {"mariadb": ("FULL", "MINIMAL", "NO_LOG"), "mysql": ("FULL", "MINIMAL")}
_SERVERS = {
    "shard": "mariadb", "mariadb_11_server": "mariadb", "mysql_server": "mysql", "mysql_97_server": "mysql"
}  # fmt: skip
_PACKED = {"mariadb": "GLOBAL log_bin_compress", "mysql": "SESSION binlog_transaction_compression"}
_IMAGES = ("FULL", "NOBLOB", "MINIMAL")
# Character sets of texts take turns with the seeds.
_DRAWN = [
    ("shard", 3),
    ("mysql_97_server", 3),
    *(
        pytest.param(fixture, seed, marks=pytest.mark.wide)
        for fixture, seed in (("shard", 0), ("mariadb_11_server", 1), ("mysql_server", 2))
    ),
]
Written = tuple[bytes, LogOffset, tuple[Column, ...]]


def _write(
    server: PrivateServer, session: Session, name: str, image: str, drawn: Drawn
) -> tuple[bytes, LogOffset, tuple[Column, ...]]:
    """Inserts, updates and deletes of the drawn rows with such images."""
    start = end_of_log(server)
    run(session, f"SET binlog_row_image = '{image}'")
    columns = filled(session, name, drawn)
    run(session, f"DELETE FROM {name} WHERE id % 3 = 0", "SET binlog_row_image = FULL")
    return read_dump(server, start), start, columns


def _decoded(
    raw: bytes,
    start: LogOffset,
    table: TableId,
    columns: tuple[Column, ...],
    *,
    sparse: bool,
    definition: Definition | None = None,
) -> tuple[LogDecoder, list[PartialImage]]:
    decoder = decoded(
        raw,
        start,
        wanted=[table],
        kinds={table: logged_as_binary(columns)},
        sparse=sparse,
        definitions={} if definition is None else {table: definition},
    )
    return decoder, [fact for fact in decoder.facts if isinstance(fact, PartialImage)]


def _rows(decoder: LogDecoder) -> pa.Table:
    return pa.Table.from_batches([images.batch for images in decoder.take_images()])


def _same_but_for_what_is_lacking(found: pa.Table, full: pa.Table, facts: list[PartialImage]) -> set[str]:
    """Compare row by row; the names of the columns that some image lacked."""
    present = {seq: fact for fact in facts for seq in range(*fact.rows)}
    names = [name for name in full.column_names if name not in INTERNAL]
    lacking: set[str] = set()
    assert found.num_rows == full.num_rows
    for row, whole in zip(found.to_pylist(), full.to_pylist(), strict=True):
        assert (row[SIDE], row[OP]) == (whole[SIDE], whole[OP])
        fact = present.get(row[SEQ])
        had = set(names) if fact is None else {*(fact.after if row[SIDE] else fact.before)}
        lacking |= set(names) - had
        for name in names:
            assert row[name] == (whole[name] if name in had else None), name
    return lacking


@contextmanager
def _logging(session: Session, flavour: str, level: str, packed: bool) -> Iterator[None]:
    """With that row metadata and compression in the log."""
    switches = [_PACKED[flavour]] if packed else []
    run(session, f"SET GLOBAL binlog_row_metadata = {level}", *(f"SET {name} = ON" for name in switches))
    try:
        yield
    finally:
        run(session, "SET GLOBAL binlog_row_metadata = FULL", *(f"SET {name} = OFF" for name in switches))


@pytest.mark.parametrize(("fixture", "seed"), _DRAWN)
def test_what_each_image_has(
    fixture: str,
    seed: int,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    subtests: pytest.Subtests,
) -> None:
    """With each level of metadata, and packed. The rows of whole images are the same with all of them."""
    server: PrivateServer = request.getfixturevalue(fixture)
    flavour, whole = _SERVERS[fixture], pa.table({})
    ways = [(level, False) for level in _LEVELS[flavour]]
    if fixture != "mysql_server":  # 8.0.15 has no compression; 8.0.20 and later do
        ways.append(("FULL", True))
    with closing(server.connect(init_command="SET time_zone = '+00:00'")) as session:
        drawn = draw(
            seed, flavour, _ROWS, collations_of(session), Counter(), generated=logs_generated(server)
        )
        for level, packed in ways:
            with subtests.test(level, packed=packed):
                schema = fresh_schema(server)
                with _logging(session, flavour, level, packed):
                    written = {
                        image: _write(server, session, f"{schema}.{image.lower()}", image, drawn)
                        for image in _IMAGES
                    }
                full = must_have_what_it_tells(
                    server, schema, written, described=level == "FULL", packed=packed
                )
                whole = whole if whole.num_rows else full
                assert full.equals(whole)


def must_have_what_it_tells(
    server: PrivateServer, schema: str, written: dict[str, Written], *, described: bool, packed: bool
) -> pa.Table:
    """Compare the images of three tables of the same rows; the rows of those that are whole."""
    lacking: dict[str, set[str]] = {}
    with connect(Endpoint("s", server.host, server.port, "catchment", server.password)) as asking:
        left_out = left_out_columns(asking)
        definitions = {
            image: read_definition(asking, TableId(schema, image.lower()))
            for image in written
            if not described
        }
    full = pa.table({})
    for image, (raw, start, columns) in written.items():
        kinds = {kind_of(event) for event in events_of(raw)}
        assert (_PAYLOAD in kinds or bool(kinds.intersection(_ROWS_PACKED))) == packed
        table, definition = TableId(schema, image.lower()), definitions.get(image)
        decoder, facts = _decoded(raw, start, table, columns, sparse=True, definition=definition)
        taken = decoder.take_images()
        assert {found.table for found in taken} == {Table(table, columns, ("id",))}
        rows = pa.Table.from_batches([found.batch for found in taken])
        full = rows if image == "FULL" else full
        lacking[image] = _same_but_for_what_is_lacking(rows, full, facts)
        _, refused = _decoded(raw, start, table, columns, sparse=False, definition=definition)
        assert [(fact.at, fact.before, fact.after) for fact in refused] == [
            (fact.at, fact.before, fact.after) for fact in facts
        ]
        assert {fact.at.file for fact in refused} <= {start.file}
        assert bool(refused) == (image != "FULL")
    assert lacking["FULL"] == set()
    assert lacking["NOBLOB"] == set(left_out[TableId(schema, "noblob")].split(", "))
    assert lacking["NOBLOB"] < lacking["MINIMAL"]
    return full


@pytest.mark.parametrize("fixture", ["shard", "mysql_server"])
def test_noblob_has_all_columns_of_a_table_without_blobs(
    fixture: str, request: pytest.FixtureRequest, fresh_schema: Callable[..., str]
) -> None:
    server: PrivateServer = request.getfixturevalue(fixture)
    schema = fresh_schema(server)
    table = TableId(schema, "t")
    documents = "geometry" if fixture == "shard" else "json"
    value = "POINT(1, 2)" if fixture == "shard" else "'[1]'"
    with closing(server.connect()) as session:
        run(session, f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(9000), n INT, d {documents})")
        start = end_of_log(server)
        run(
            session,
            "SET binlog_row_image = NOBLOB",
            f"INSERT INTO {table} VALUES (1, 'a', 1, {value}), (2, 'b', 2, NULL)",
            f"INSERT INTO {table} (id) VALUES (3)",
            f"UPDATE {table} SET n = 7",
            f"REPLACE INTO {table} (id, n) VALUES (1, 9)",
            f"DELETE FROM {table}",
        )
        raw = read_dump(server, start)
    decoder, lacking = _decoded(raw, start, table, (), sparse=False)
    assert lacking == []
    assert [(row[SIDE], row["id"], row["n"]) for row in _rows(decoder).to_pylist()][-3:] == [
        (0, 1, 9),
        (0, 2, 7),
        (0, 3, 7),
    ]
