"""The log of a real MySQL: the kinds of events that 8.0 and 9.7 write, as groups, rows and facts."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from catchment.model.errors import CorruptLog
from catchment.model.image import GROUP, SEQ, SIDE
from catchment.model.position import GroupKind, LogOffset, Xid
from catchment.schema.birth import makes_empty
from catchment.schema.text import read_text
from catchment.wire.log import facts
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.events import HEADER, events_of, everything, joined, kind_of, seal
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

GROUP_KINDS = list(GroupKind)
COLUMNS = (
    "id int PRIMARY KEY, v varchar(40), j json, y year, n int unsigned, b blob, "
    "e enum('a','ß') CHARACTER SET latin1"
)
FORMAT, XID, GTID, ROWS_QUERY, PARTIAL_UPDATE, PAYLOAD, TAGGED = 15, 16, 33, 29, 39, 40, 42


class Written:
    """What statements wrote: the events of the log, and a decoder that has read them."""

    def __init__(self, raw: bytes, start: LogOffset, decoder: LogDecoder) -> None:
        self.raw = raw
        self.kinds = [kind_of(event) for event in events_of(raw)]
        self.facts = decoder.facts
        self.files = decoder.files
        self.start = start
        self.groups = decoder.take_groups().to_pylist()
        rows = [row for images in decoder.take_images() for row in images.batch.to_pylist()]
        self.rows = sorted(rows, key=lambda row: int(row[SEQ]))

    @property
    def group_kinds(self) -> list[GroupKind]:
        return [GROUP_KINDS[group["kind"]] for group in self.groups]

    def sides(self, *columns: str) -> list[tuple[Any, ...]]:
        """Side and some columns of each image."""
        return [(row[SIDE], *(row[column] for column in columns)) for row in self.rows]


Write = Callable[..., Written]


@pytest.fixture
def session(mysql: PrivateMySQL) -> Iterator[Session]:
    with mysql.connect() as connection:
        yield connection


@pytest.fixture
def write(mysql: PrivateMySQL, session: Session, fresh_schema: Callable[..., str]) -> Write:
    """Runs statements (`{t}` is the table, `{s}` its schema) and reads what they wrote."""
    schema = fresh_schema(mysql)
    run(session, f"CREATE TABLE {schema}.t ({COLUMNS})")

    def write_statements(*statements: str, **options: Any) -> Written:
        start = end_of_log(mysql)
        run(session, *(text.replace("{t}", f"{schema}.t").replace("{s}", schema) for text in statements))
        raw = read_dump(mysql, start)
        return Written(raw, start, decoded(raw, start, **options))

    return write_statements


def needs(mysql: PrivateMySQL, *version: int) -> None:
    if mysql.build.version < version:
        pytest.skip(f"MySQL {mysql.build.version} does not have it")


def test_values(write: Write) -> None:
    log = write(
        "INSERT INTO {t} VALUES (1, 'é', '{\"b\": 1}', 1999, 4000000000, x'00', 'ß'), "
        "(2, NULL, NULL, 0, 1, '', 'a')"
    )
    assert log.sides("id", "v", "j", "y", "n", "b", "e") == [
        (1, 1, "é", '{"b": 1}', 1999, 4_000_000_000, b"\0", "ß"),
        (1, 2, None, None, 0, 1, b"", "a"),
    ]
    assert log.group_kinds == [GroupKind.TRANSACTION]


def test_gtids(mysql: PrivateMySQL, write: Write) -> None:
    log = write("INSERT INTO {t} (id) VALUES (1)", "FLUSH BINARY LOGS")
    ((server, executed),) = mysql.sql("SELECT @@server_uuid, @@gtid_executed")
    (group,) = log.groups
    assert (str(uuid.UUID(bytes=group["uuid"])), group["tag"]) == (server, "")
    assert log.files[-1].gtid_list == str(executed).replace("\n", "")
    assert any(part.endswith(f"-{group['sequence']}") for part in log.files[-1].gtid_list.split(":"))


def test_gtids_with_a_tag(mysql: PrivateMySQL, write: Write) -> None:
    needs(mysql, 8, 4)
    log = write(
        "SET gtid_next = 'AUTOMATIC:catch_1'",
        "INSERT INTO {t} (id) VALUES (1)",
        "INSERT INTO {t} (id) VALUES (2)",
        "SET gtid_next = 'AUTOMATIC'",
        "FLUSH BINARY LOGS",
    )
    assert TAGGED in log.kinds
    assert [(group["tag"], group["sequence"]) for group in log.groups] == [("catch_1", 1), ("catch_1", 2)]
    assert log.files[-1].gtid_list == str(mysql.sql("SELECT @@gtid_executed")[0][0]).replace("\n", "")


@pytest.mark.wide
def test_anonymous_groups(mysql_80_build: Build) -> None:
    """gtid_mode=OFF: groups have no names."""
    settings = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}
    with PrivateMySQL(mysql_80_build, server_id=9, settings=settings) as own:
        start = end_of_log(own)
        own.sql("CREATE DATABASE a", "CREATE TABLE a.t (id int)", "INSERT INTO a.t VALUES (1)")
        own.sql("CREATE TABLE a.u AS SELECT * FROM a.t")
        log = Written(raw := read_dump(own, start), start, decoded(raw, start))
    assert {group["uuid"] for group in log.groups} == {None}
    assert {group["sequence"] for group in log.groups} == {0}
    assert GroupKind.DDL in log.group_kinds
    assert GroupKind.TRANSACTION in log.group_kinds
    assert [row["id"] for row in log.rows] == [1, 1]


def test_xa(write: Write) -> None:
    log = write(
        "XA START 'one','b',7",
        "INSERT INTO {t} (id) VALUES (1)",
        "XA END 'one','b',7",
        "XA PREPARE 'one','b',7",
        "XA COMMIT 'one','b',7",
        "XA START 'two'",
        "INSERT INTO {t} (id) VALUES (2)",
        "XA END 'two'",
        "XA PREPARE 'two'",
        "XA ROLLBACK 'two'",
        "XA START 'three'",
        "INSERT INTO {t} (id) VALUES (3)",
        "XA END 'three'",
        "XA COMMIT 'three' ONE PHASE",
    )
    prepare, end = GroupKind.XA_PREPARE, GroupKind.XA_END
    assert log.group_kinds == [prepare, end, prepare, end, GroupKind.TRANSACTION]
    one, two = Xid(7, b"one", b"b"), Xid(1, b"two", b"")
    assert [(f.group, f.xid) for f in log.facts if isinstance(f, facts.XaPrepare)] == [(0, one), (2, two)]
    assert [(f.xid, f.committed) for f in log.facts if isinstance(f, facts.XaEnd)] == [
        (one, True),
        (two, False),
    ]
    assert [(row["id"], row[GROUP]) for row in log.rows] == [(1, 0), (2, 2), (3, 4)]


def test_statements(write: Write) -> None:
    log = write(
        "CREATE TABLE {s}.u LIKE {t}",
        "TRUNCATE {t}",
        "BEGIN",
        "INSERT INTO {t} (id) VALUES (1)",
        "SAVEPOINT `Sp`",
        "INSERT INTO {t} (id) VALUES (2)",
        "ROLLBACK TO sp",
        "INSERT INTO {t} (id) VALUES (3)",
        "COMMIT",
        "SET SESSION binlog_format = STATEMENT",
        "INSERT INTO {t} (id) VALUES (4 + FLOOR(RAND()))",
        "SET SESSION binlog_format = ROW",
    )
    ddl, transaction = GroupKind.DDL, GroupKind.TRANSACTION
    assert log.group_kinds == [ddl, ddl, transaction, transaction]
    assert [f.sql.split(" ")[0] for f in log.facts if isinstance(f, facts.Ddl)] == ["CREATE", "TRUNCATE"]
    (statement,) = (f for f in log.facts if isinstance(f, facts.Statement))
    assert statement.sql.startswith("INSERT INTO")
    assert statement.group == 3
    assert [row["id"] for row in log.rows] == [1, 3]


@pytest.mark.parametrize("mode", ["", "ANSI", "NO_BACKSLASH_ESCAPES"])
@pytest.mark.parametrize(
    "options",
    [
        "",
        "(PRIMARY KEY (id)) ENGINE=InnoDB COMMENT='x'",
        "(PRIMARY KEY (id)) DEFAULT CHARSET=latin1",
        "(PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 2",
    ],
)
def test_create_table_as_select(mysql: PrivateMySQL, write: Write, options: str, mode: str) -> None:
    """One transaction with the statement and the rows since 8.0.21; options and partitions stand behind the words by
    which the statement is known."""
    needs(mysql, 8, 0, 21)
    log = write(
        "INSERT INTO {t} (id) VALUES (1)",
        f"SET sql_mode = '{mode}'",
        f"CREATE TABLE {{s}}.w {options} AS SELECT id FROM {{t}}",
        "SET sql_mode = DEFAULT",
    )
    (created,) = (f for f in log.facts if isinstance(f, facts.Ddl))
    assert created.group == 1
    assert created.sql.startswith("CREATE TABLE")
    assert log.group_kinds == [GroupKind.TRANSACTION, GroupKind.DDL]
    assert [(row["id"], row[GROUP]) for row in log.rows] == [(1, 0), (1, 1)]
    made = read_text(created.sql, created.schema, mysql=True, sql_mode=created.sql_mode).words
    assert makes_empty(made)


def test_a_text_of_a_transaction_that_quotes_such_a_statement(write: Write) -> None:
    log = write(
        "SET binlog_format = STATEMENT",
        "INSERT INTO {t} (id) VALUES (1) /* CREATE TABLE x (a INT) START TRANSACTION */",
        "SET binlog_format = DEFAULT",
    )
    assert [type(f) for f in log.facts if isinstance(f, facts.Ddl | facts.Statement)] == [facts.Statement]


def test_text_of_statements(write: Write) -> None:
    log = write("SET binlog_rows_query_log_events = ON", "INSERT INTO {t} (id) VALUES (1)")
    assert ROWS_QUERY in log.kinds
    assert log.sides("id") == [(1, 1)]


def test_images_that_lack_columns(write: Write) -> None:
    statements = (
        "INSERT INTO {t} VALUES (1, 'a', '[1]', 2000, 5, 'blob', 'a')",
        "SET binlog_row_image = MINIMAL",
        "UPDATE {t} SET v = 'b'",
        "SET binlog_row_image = NOBLOB",
        "UPDATE {t} SET v = NULL, e = 'ß'",
        "SET binlog_row_image = MINIMAL",
        "INSERT INTO {t} (id, v) VALUES (2, 'x')",
        "DELETE FROM {t} WHERE id = 1",
        "SET binlog_row_image = FULL",
    )
    log = write(*statements, sparse=True)
    lacking = [f for f in log.facts if isinstance(f, facts.PartialImage)]
    assert [(f.before, f.after, f.rows) for f in lacking] == [
        (("id",), ("v",), (1, 3)),
        (("id", "v", "j", "y", "n", "e"), ("id", "v", "j", "y", "n", "e"), (3, 5)),
        ((), ("id", "v"), (5, 6)),
        (("id",), (), (6, 7)),
    ]
    assert log.sides("id", "v", "n", "e")[1:] == [
        (0, 1, None, None, None),
        (1, None, "b", None, None),
        (0, 1, "b", 5, "a"),
        (1, 1, None, 5, "ß"),
        (1, 2, "x", None, None),
        (0, 1, None, None, None),
    ]
    told = write("DELETE FROM {t}", *statements)
    lacking = [f for f in told.facts if isinstance(f, facts.PartialImage)]
    assert [f.rows[1] - f.rows[0] for f in lacking] == [0, 0, 0, 0]
    assert [row["id"] for row in told.rows if row[SIDE] == 1] == [1]


@pytest.mark.parametrize("before", ["full", "key"])
def test_parts_of_documents(write: Write, before: str) -> None:
    log = write(
        'INSERT INTO {t} (id, j) VALUES (1, \'{"a": [1, 2, 3], "k": "' + "x" * 200 + "\"}'), (2, '[]')",
        "SET binlog_row_value_options = PARTIAL_JSON",
        "UPDATE {t} SET j = JSON_SET(j, '$.a[1]', 'new', '$.\"b c\"', JSON_OBJECT('z', 1.5)), v = 'w'",
        "UPDATE {t} SET j = JSON_REMOVE(j, '$.a[0]', '$.k'), id = id + 10 WHERE id = 1",
        "SET binlog_row_value_options = ''",
        before=before,
    )
    assert PARTIAL_UPDATE in log.kinds
    after = [(row["id"], row["j"]) for row in log.rows if row[SIDE] == 1]
    text = '{"a": [1, "new", 3], "k": "' + "x" * 200 + '", "b c": {"z": 1.5}}'
    assert after[2] == (1, text)
    assert after[-1] == (11, '{"a": ["new", 3], "b c": {"z": 1.5}}')
    old = [row["id"] for row in log.rows if row[SIDE] == 0]
    assert old == ([1, 2, 1] if before == "full" else [1])  # the key is changed once


def test_transaction_payload(mysql: PrivateMySQL, write: Write) -> None:
    needs(mysql, 8, 0, 20)
    statements = [
        "BEGIN",
        *(f"INSERT INTO {{t}} (id, v) VALUES ({i}, REPEAT('x', {i % 40}))" for i in range(300)),
    ]
    plain = write(*statements, "COMMIT", "DELETE FROM {t}")
    packed = write("SET binlog_transaction_compression = ON", *statements, "COMMIT", "DELETE FROM {t}")
    assert (PAYLOAD in packed.kinds, XID in packed.kinds) == (True, False)
    assert packed.rows == plain.rows
    assert packed.group_kinds == plain.group_kinds
    assert [group["end"] for group in packed.groups][:1] == [group["start"] for group in packed.groups][1:]


def test_payload_with_an_event_of_many_pieces(mysql: PrivateMySQL, write: Write) -> None:
    needs(mysql, 8, 0, 20)
    log = write(
        "SET binlog_transaction_compression = ON",
        "ALTER TABLE {t} MODIFY b longblob",
        "INSERT INTO {t} (id, b) VALUES (1, REPEAT('ab', 3000000)), (2, RANDOM_BYTES(1000))",
        "SET binlog_transaction_compression = OFF",
    )
    assert log.rows[0]["b"] == b"ab" * 3_000_000
    assert len(log.rows[1]["b"]) == 1000


def test_damaged_payload(mysql: PrivateMySQL, write: Write) -> None:
    """A payload that does not unpack names the place of its event."""
    needs(mysql, 8, 0, 20)
    log = write("SET binlog_transaction_compression = ON", "INSERT INTO {t} (id) VALUES (1)")
    raw = bytearray(log.raw)
    raw[raw.index(b"\x28\xb5\x2f\xfd") + 9] ^= 0x40  # zstd's magic number
    decoder = LogDecoder(log.start, verify_checksum=False)
    with pytest.raises(CorruptLog, match=r"^log binlog\.\d+:\d+: "):
        decoder.feed(raw)


def test_pieces_of_any_size(mysql: PrivateMySQL, write: Write) -> None:
    """Two pieces, cut at every 7th byte, give what the whole gives."""
    compression = "SET binlog_transaction_compression = ON" if mysql.build.version >= (8, 0, 20) else "DO 1"
    log = write(
        compression,
        "INSERT INTO {t} (id, j) VALUES (1, '[1, 2]')",
        "SET binlog_row_value_options = PARTIAL_JSON",
        "UPDATE {t} SET j = JSON_SET(j, '$[0]', 7)",
        "XA START 'cut'",
        "DELETE FROM {t}",
        "XA END 'cut'",
        "XA COMMIT 'cut' ONE PHASE",
    )
    expected = everything(decoded(log.raw, log.start))
    for cut in range(0, len(log.raw), 7):
        decoder = LogDecoder(log.start)
        decoder.feed(log.raw[:cut])
        decoder.feed(log.raw[cut:])
        assert everything(decoder) == expected, cut


@pytest.mark.parametrize(
    ("columns", "certain"),
    [("id int PRIMARY KEY, n int, y year", True), ("id int PRIMARY KEY, y year, n int unsigned", False)],
)
def test_versions_that_may_or_may_not_tell_the_sign_of_a_year(
    mysql: PrivateMySQL, session: Session, fresh_schema: Callable[..., str], columns: str, certain: bool
) -> None:
    table = f"{fresh_schema(mysql)}.t"
    run(session, f"CREATE TABLE {table} ({columns})")
    start = end_of_log(mysql)
    run(session, f"INSERT INTO {table} (id, n, y) VALUES (1, 2, 2024)")
    events = events_of(read_dump(mysql, start))
    i = next(i for i, event in enumerate(events) if kind_of(event) == FORMAT)
    version = b"8.0.18".ljust(50, b"\0")
    events[i] = seal(events[i][: HEADER + 2] + version + events[i][HEADER + 52 :])
    if certain:
        (images,) = decoded(joined(events), start).take_images()
        assert images.batch.select(["id", "n", "y"]).to_pylist() == [{"id": 1, "n": 2, "y": 2024}]
        return
    decoder = decoded(joined(events), start)
    (fact,) = (fact for fact in decoder.facts if isinstance(fact, facts.Unreadable))
    assert str(fact.table) == table
    assert "the sign of columns behind a YEAR is not certain" in fact.why
    assert decoder.take_images() == []
