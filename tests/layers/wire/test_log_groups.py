"""Groups, savepoints, XA, statements, files and cuts."""

from collections.abc import Callable
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CorruptLog, CutMissed, ServerSaid, Unsupported
from catchment.model.image import SEQ
from catchment.model.position import GroupKind, Gtid, LogOffset, Xid
from catchment.model.table import TableId
from catchment.wire.log import facts, queries
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.queries import Verb, classify
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import WITH_ANNOTATIONS, decoded, end_of_log, read_dump
from tests.layers.wire.events import events_of, joined, kind_of, packet, seal

KINDS = [kind.value for kind in GroupKind]


def kept(decoder: LogDecoder) -> list[Any]:
    """Ids of rows that are not undone, in order."""
    void = {n for first, end in decoder.voids for n in range(first, end)}
    rows = [row for images in decoder.take_images() for row in images.batch.to_pylist()]
    return [row["id"] for row in sorted(rows, key=lambda row: row[SEQ]) if row[SEQ] not in void]


def kinds(decoder: LogDecoder) -> list[str]:
    return [KINDS[kind] for kind in decoder.take_groups()["kind"].to_pylist()]


@pytest.fixture
def table(session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]) -> TableId:
    schema = fresh_schema(shard)
    run(
        session,
        f"CREATE TABLE {schema}.t (id int PRIMARY KEY)",
        f"CREATE TABLE {schema}.m (id int PRIMARY KEY) ENGINE=MyISAM",
    )
    return TableId(schema, "t")


def insert(table: TableId, *ids: int) -> str:
    return f"INSERT INTO {table} VALUES " + ",".join(f"({i})" for i in ids)


def test_savepoints(session: Session, shard: PrivateServer, table: TableId) -> None:
    """A temporary table made or a MyISAM table changed behind a savepoint keeps undone rows in the log."""
    start = end_of_log(shard)
    run(
        session,
        f"USE {table.schema}",
        "BEGIN",
        insert(table, 1, 2),
        "SAVEPOINT `odd``Näme`",
        insert(table, 3),
        "SAVEPOINT inner1",
        insert(table, 4, 5),
        "CREATE TEMPORARY TABLE scratch (a int)",
        "ROLLBACK TO SAVEPOINT INNER1",
        insert(table, 6),
        f"INSERT INTO {table.schema}.m VALUES (2)",
        "ROLLBACK TO inner1",
        insert(table, 7),
        f"INSERT INTO {table.schema}.m VALUES (3)",
        "ROLLBACK TO `ODD``näme`",
        insert(table, 8),
        "SAVEPOINT s",
        insert(table, 9),
        "SAVEPOINT other",
        "SAVEPOINT S",
        insert(table, 10),
        f"INSERT INTO {table.schema}.m VALUES (4)",
        "ROLLBACK TO s",
        "COMMIT",
        "BEGIN",
        insert(table, 11),
        "SAVEPOINT s",
        insert(table, 12),
        "DROP TEMPORARY TABLE scratch",
        "ROLLBACK TO s",
        "COMMIT",
    )
    decoder = decoded(read_dump(shard, start), start, wanted=[table])
    assert decoder.voids == [(2, 7), (9, 10), (11, 12)]
    found = [int(row[0]) for row in run(session, f"SELECT id FROM {table} ORDER BY id")]
    assert kept(decoder) == found == [1, 2, 8, 9, 11]
    assert set(kinds(decoder)) == {"transaction"}


def test_groups_that_end_in_rollback(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    run(
        session,
        f"USE {table.schema}",
        "BEGIN",
        insert(table, 1),
        "SAVEPOINT s",
        insert(table, 2),
        "CREATE TEMPORARY TABLE scratch (a int)",
        "ROLLBACK TO s",
        f"UPDATE {table} SET id = id + 100",
        "ROLLBACK",
        "DROP TEMPORARY TABLE scratch",
        insert(table, 3),
    )
    decoder = decoded(read_dump(shard, start), start, wanted=[table])
    assert decoder.voids == [(0, 4)]
    assert kept(decoder) == [3]
    assert kinds(decoder) == ["rolled back", "transaction"]


def test_xa(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    a, b, c = (f"'{table.schema}{letter}'" for letter in "abc")
    run(
        session,
        f"XA START {a},'branch',7",
        insert(table, 1),
        f"XA END {a},'branch',7",
        f"XA PREPARE {a},'branch',7",
        f"XA COMMIT {a},'branch',7",
        f"XA START {b}",
        insert(table, 2),
        f"XA END {b}",
        f"XA PREPARE {b}",
        f"XA ROLLBACK {b}",
        f"XA START {c}",
        insert(table, 3),
        f"XA END {c}",
        f"XA COMMIT {c} ONE PHASE",
    )
    decoder = decoded(read_dump(shard, start), start, wanted=[table])
    assert kinds(decoder) == ["xa prepare", "xa commit or rollback"] * 2 + ["transaction"]
    first = Xid(7, f"{table.schema}a".encode(), b"branch")
    second = Xid(1, f"{table.schema}b".encode(), b"")
    told = [(type(f).__name__, f.group, f.xid, getattr(f, "committed", None)) for f in xa_facts(decoder)]
    assert told == [
        ("XaPrepare", 0, first, None),
        ("XaEnd", 1, first, True),
        ("XaPrepare", 2, second, None),
        ("XaEnd", 3, second, False),
    ]
    assert kept(decoder) == [1, 2, 3]


def xa_facts(decoder: LogDecoder) -> list[facts.XaPrepare | facts.XaEnd]:
    return [fact for fact in decoder.facts if isinstance(fact, facts.XaPrepare | facts.XaEnd)]


def test_statements_and_ddl(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    run(
        session,
        f"USE {table.schema}",
        "CREATE TABLE `ta``ble` (a int COMMENT 'é😀')",
        "CREATE TABLE copy AS SELECT 5 AS id",
        "SET binlog_format = STATEMENT",
        "SET @v = 3",
        "INSERT INTO t VALUES (@v)",
        "SET binlog_format = ROW",
        "SET NAMES latin1",
    )
    with shard.connect(database=table.schema, charset="latin1") as other, other.cursor() as cursor:
        cursor.execute("CREATE TABLE `lätin` (a int)")
    run(session, "SET NAMES utf8mb4", "TRUNCATE TABLE t")
    decoder = decoded(read_dump(shard, start), start, wanted=[table, TableId(table.schema, "copy")])
    ddl = [fact for fact in decoder.facts if isinstance(fact, facts.Ddl)]
    assert [(fact.group, fact.sql[:23]) for fact in ddl] == [
        (0, "CREATE TABLE `ta``ble` "),
        (1, "CREATE TABLE `copy` (\n "),
        (3, "CREATE TABLE `lätin` (a"),
        (4, "TRUNCATE TABLE t"),
    ]
    assert all(fact.schema == table.schema and fact.flagged for fact in ddl)
    assert "é😀" in ddl[0].sql
    (statement,) = [fact for fact in decoder.facts if isinstance(fact, facts.Statement)]
    assert (statement.group, statement.sql) == (2, "INSERT INTO t VALUES (@v)")
    completed = "completed ddl"
    assert kinds(decoder) == [completed, "ddl", "transaction", completed, completed]
    assert kept(decoder) == [5]


def test_groups_join_up_and_carry_their_gtids(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    run(session, *(insert(table, i) for i in range(50)))
    decoder = decoded(read_dump(shard, start), start, wanted=[])
    groups = decoder.take_groups().to_pylist()
    assert len(groups) == 50
    assert groups[0]["start"] == start.offset
    assert [row["end"] for row in groups[:-1]] == [row["start"] for row in groups[1:]]
    assert [row["ordinal"] for row in groups] == list(range(50))
    assert decoder.at == end_of_log(shard)
    last = decoder.last_group
    assert last is not None
    assert (last.end, last.kind) == (decoder.at, GroupKind.TRANSACTION)
    gtid = run(session, "SELECT @@gtid_binlog_pos")[0][0]
    assert str(last.gtid) == gtid
    assert last.gtid == Gtid(*(groups[-1][name] for name in ("domain", "server_id", "sequence")))
    now = int(run(session, "SELECT UNIX_TIMESTAMP()")[0][0])
    assert now - 60 <= groups[-1]["timestamp"] <= now


def test_annotations_do_not_matter(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    run(session, "BEGIN", insert(table, 1), insert(table, 2), "COMMIT", insert(table, 3))
    without, annotated = read_dump(shard, start), read_dump(shard, start, 1 | WITH_ANNOTATIONS)
    assert len(annotated) > len(without)
    for raw in (without, annotated):
        decoder = decoded(raw, start, wanted=[table])
        assert (decoder.at, kept(decoder)) == (end_of_log(shard), [1, 2, 3])


def test_cuts(session: Session, shard: PrivateServer, table: TableId) -> None:
    """A stop is reached at every end of a group and missed at every other offset."""
    start = end_of_log(shard)
    run(session, insert(table, 1), insert(table, 2), insert(table, 3))
    raw = read_dump(shard, start)
    ends = [start.offset, *decoded(raw, start).take_groups()["end"].to_pylist()]
    for offset in range(start.offset, ends[-1] + 1):
        stop = LogOffset(start.file, offset)
        decoder = LogDecoder(start, [table], stop)
        if offset not in ends:
            with pytest.raises(CutMissed, match=str(offset)):
                decoder.feed(raw)
            with pytest.raises(CutMissed):
                decoder.feed(b"")
            continue
        decoder.feed(raw)
        assert decoder.reached_stop
        assert not decoder.ended
        assert (decoder.at, len(decoder.take_groups())) == (stop, ends.index(offset))
        assert kept(decoder) == [1, 2, 3][: ends.index(offset)]
        assert len(decoder.files) == 1


def test_files(shard: PrivateServer) -> None:
    with PrivateServer(server_id=9, settings={"max_binlog_size": 4096}) as server:
        first = LogOffset(server.sql("SHOW BINARY LOGS")[0][0], 4)
        server.sql("CREATE DATABASE m", "CREATE TABLE m.t (id int PRIMARY KEY)")
        for i in range(80):
            server.sql(f"INSERT INTO m.t VALUES ({i})")
        server.restart()
        server.sql("INSERT INTO m.t VALUES (1000)", "FLUSH BINARY LOGS")
        raw = read_dump(server, first)
        decoder = decoded(raw, first, wanted=[TableId("m", "t")])
        assert decoder.ended
        files = decoder.files
        shown = [row[0] for row in server.sql("SHOW BINARY LOGS")]
        assert [file.name for file in files] == shown
        assert len(shown) > 4
        assert [file.complete for file in files] == [True] * (len(files) - 1) + [False]
        assert {file.server_id for file in files} == {9}
        assert all(file.born > 1_700_000_000 for file in files)
        assert [file.name for file in files if file.created] == [shown[0], stopped(decoder)]
        assert files[0].gtid_list == ""
        assert files[-1].gtid_list == server.sql("SELECT @@gtid_binlog_pos")[0][0]
        assert kept(decoder) == [*range(80), 1000]
        rotations = [fact.file for fact in decoder.facts if isinstance(fact, facts.RotateTo)]
        assert set(shown[1:]) - set(rotations) == {stopped(decoder)}
        assert decoder.at == end_of_log(server)
        groups = decoder.take_groups().to_pylist()
        check_stops_between_groups(server, raw, first, groups, shown)


def stopped(decoder: LogDecoder) -> str:
    """The file after the one that ended with a STOP event."""
    (stop,) = [fact for fact in decoder.facts if isinstance(fact, facts.ServerStop)]
    names = [file.name for file in decoder.files]
    return names[names.index(stop.at.file) + 1]


def check_stops_between_groups(
    server: PrivateServer, raw: bytes, first: LogOffset, groups: list[dict[str, Any]], shown: list[str]
) -> None:
    """Every event outside of groups ends at a place where a reader may stop."""
    for index, name in enumerate(shown[:-1]):
        inside = [(row["start"], row["end"]) for row in groups if row["file"] == index]
        for row in server.sql(f"SHOW BINLOG EVENTS IN '{name}'"):
            end = int(row[4])
            stop = LogOffset(name, end)
            if any(begin < end < finish for begin, finish in inside):
                with pytest.raises(CutMissed):
                    decoded(raw, first, wanted=[], stop=stop)
            else:
                decoder = decoded(raw, first, wanted=[], stop=stop)
                assert decoder.reached_stop
                assert decoder.at == stop
        with pytest.raises(CutMissed):
            decoded(raw, first, wanted=[], stop=LogOffset(name, 1 << 20))


def test_a_file_cut_off_inside_a_group(session: Session, shard: PrivateServer, table: TableId) -> None:
    """What a server that was killed leaves: no end of the group, no rotation, then the next file."""
    start = end_of_log(shard)
    run(session, insert(table, 1), insert(table, 2), "FLUSH BINARY LOGS", insert(table, 3))
    events = events_of(read_dump(shard, start))
    rotation = next(i for i, event in enumerate(events) if i and kind_of(event) == 4)
    assert kind_of(events[rotation - 1]) == 16
    decoder = decoded(joined(events[: rotation - 1] + events[rotation + 1 :]), start, wanted=[table])
    (cut_off,) = [fact for fact in decoder.facts if isinstance(fact, facts.CutOff)]
    assert cut_off.group == 1
    assert cut_off.start.offset < cut_off.at.offset
    assert kept(decoder) == [1, 3]
    assert decoder.take_groups()["ordinal"].to_pylist() == [0, 2]
    assert [file.complete for file in decoder.files] == [False, False]


def test_errors_of_the_server(shard: PrivateServer) -> None:
    missing = LogOffset("binlog.999999", 4)
    with pytest.raises(ServerSaid) as refused:
        decoded(read_dump(shard, missing), missing)
    assert refused.value.code == 1236
    assert "not find first log file" in str(refused.value)


def test_unknown_events(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    run(session, insert(table, 1))
    events = events_of(read_dump(shard, start))
    unknown = bytearray(events[2])
    unknown[4] = 77
    odd = [*events[:2], seal(unknown)]
    with pytest.raises(Unsupported, match=rf"{start}.*event type 77"):
        decoded(joined(odd), start)
    unknown[17] |= 0x80
    decoder = decoded(joined([*events[:2], seal(unknown)]), start)
    assert decoder.at.offset == start.offset + len(unknown)


def test_a_dump_of_another_place(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    run(session, insert(table, 1))
    raw = read_dump(shard, start)
    for other in (LogOffset(start.file, start.offset + 1), LogOffset(start.file + "0", start.offset)):
        with pytest.raises(CorruptLog, match="the dump begins at"):
            decoded(raw, other)
    with pytest.raises(CorruptLog, match="unknown kind"):
        decoded(packet(1, b"\x55"), start)
    with pytest.raises(CorruptLog, match="empty packet"):
        decoded(packet(1, b""), start)


def test_checksums(session: Session, shard: PrivateServer, table: TableId) -> None:
    start = end_of_log(shard)
    run(session, insert(table, 1), insert(table, 2))
    events = events_of(read_dump(shard, start))
    rows = next(i for i, event in enumerate(events) if kind_of(event) == 23)
    damaged = bytearray(events[rows])
    damaged[-6] ^= 1
    raw = joined([*events[:rows], bytes(damaged), *events[rows + 1 :]])
    with pytest.raises(CorruptLog, match=rf"log {start.file}:\d+: the checksum"):
        decoded(raw, start)
    assert kept(decoded(raw, start, wanted=[table], verify_checksum=False)) != [1, 2]


def test_a_log_without_checksums() -> None:
    with PrivateServer(server_id=9, settings={"binlog_checksum": "NONE"}) as server:
        first = LogOffset(server.sql("SHOW BINARY LOGS")[0][0], 4)
        server.sql("CREATE DATABASE m", "CREATE TABLE m.t (id int PRIMARY KEY)", "INSERT INTO m.t VALUES (1)")
        middle = end_of_log(server)
        server.sql(
            "INSERT INTO m.t VALUES (2)", "SET GLOBAL binlog_checksum = CRC32", "INSERT INTO m.t VALUES (3)"
        )
        wanted = [TableId("m", "t")]
        end = end_of_log(server)
        for start, rows in ((first, [1, 2, 3]), (middle, [2, 3])):
            decoder = decoded(read_dump(server, start), start, wanted=wanted)
            assert (kept(decoder), decoder.at) == (rows, end)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("BEGIN", (Verb.BEGIN, "")),
        (" commit ", (Verb.COMMIT, "")),
        ("SAVEPOINT `a``B`", (Verb.SAVEPOINT, "a`B")),
        ("ROLLBACK TO `x y`", (Verb.ROLLBACK_TO, "x y")),
        ("rollback work to savepoint Plain", (Verb.ROLLBACK_TO, "Plain")),
        ("ROLLBACK TO SAVEPOINT `savepoint`", (Verb.ROLLBACK_TO, "savepoint")),
        ("RELEASE SAVEPOINT a", (Verb.RELEASE, "a")),
        ("XA END X'01',X'',1", (Verb.XA, "")),
        ("XA COMMIT X'01',X'',1", (Verb.OTHER, "")),
        ("INSERT INTO savepoint VALUES (1)", (Verb.OTHER, "")),
        ("ROLLBACK AND CHAIN", (Verb.OTHER, "")),
    ],
)
def test_verbs(sql: str, expected: tuple[Verb, str]) -> None:
    assert classify(sql) == expected


@pytest.mark.parametrize(
    ("collation", "sql", "text"),
    [
        (28, b"'\xbf\x5c', x, '\xff'", "'縗', x, '\ufffd'"),  # gbk: the second byte is a backslash by itself
        (8, b"'\xe9'", "'é'"),
        (45, b"'\xe9\xff', '\xc3\xa9'", "'\ufffd\ufffd', 'é'"),
        (63, b"'\xe9'", "'\ufffd'"),
    ],
)
def test_a_byte_that_is_no_text_does_not_hide_the_quote_behind_it(
    collation: int, sql: bytes, text: str
) -> None:
    status = b"\4" + collation.to_bytes(2, "little") * 3
    body = bytes(8) + b"\0" + bytes(2) + len(status).to_bytes(2, "little") + status + b"\0" + sql
    assert queries.read(body, packed=False).sql == text
