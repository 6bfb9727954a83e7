"""The log of MariaDB 11.8, where the events inside a group do not say where they end."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from catchment.model.errors import CorruptLog, CutMissed
from catchment.model.image import GROUP, OP, SEQ, SIDE
from catchment.model.position import LogOffset
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.dumps import NON_BLOCKING, WITH_ANNOTATIONS, decoded, end_of_log, read_dump
from tests.layers.wire.events import events_of, joined, kind_of
from tests.world.new_log_file import settled_end
from tests.world.servers.launch import PrivateMariaDB

_XID, _XA_PREPARE, _GTID = 16, 38, 162
_STATEMENTS = (
    "CREATE TABLE {s}.t (id INT PRIMARY KEY, v VARCHAR(20))",
    "BEGIN",
    "INSERT INTO {s}.t VALUES (1, 'a'), (2, 'b')",
    "SAVEPOINT p",
    "DELETE FROM {s}.t WHERE id = 2",
    "ROLLBACK TO p",
    "UPDATE {s}.t SET v = 'c' WHERE id = 1",
    "COMMIT",
    "XA START 'x'",
    "INSERT INTO {s}.t VALUES (3, 'x')",
    "XA END 'x'",
    "XA PREPARE 'x'",
    "XA COMMIT 'x'",
    "CREATE TABLE {s}.u AS SELECT * FROM {s}.t",
    "DROP TABLE {s}.t",
)


@pytest.mark.parametrize("flags", [NON_BLOCKING, NON_BLOCKING | WITH_ANNOTATIONS])
def test_groups_end_where_the_server_says(
    mariadb_11_server: PrivateMariaDB, fresh_schema: Callable[..., str], flags: int
) -> None:
    server = mariadb_11_server
    schema = fresh_schema(server)
    start = end_of_log(server)
    server.sql(*(statement.format(s=schema) for statement in _STATEMENTS))
    raw = read_dump(server, start, flags)
    decoder = decoded(raw, start)
    assert sum(event[13:17] == bytes(4) for event in map(bytes, events_of(raw))) > 10
    groups = decoder.take_groups().to_pylist()
    said = server.sql(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    begins = [int(row[1]) for row in said if row[2] == "Gtid"]
    assert [group["start"] for group in groups] == begins
    assert [group["end"] for group in groups] == [*begins[1:], end_of_log(server).offset]
    assert decoder.at == end_of_log(server)
    rows = [row for images in decoder.take_images() for row in images.batch.to_pylist()]
    assert sorted((row[SEQ], row[GROUP], row["id"], row["v"]) for row in rows) == [
        (0, 1, 1, "a"),
        (1, 1, 2, "b"),
        (2, 1, 1, "a"),
        (3, 1, 1, "c"),
        (4, 2, 3, "x"),
        (5, 4, 1, "c"),
        (6, 4, 2, "b"),
        (7, 4, 3, "x"),
    ]
    assert decoder.voids == []  # the server cut the savepoint's rows out of the group


class Written(NamedTuple):
    """The log of the statements over two files: its bytes, its groups and its rows."""

    server: PrivateMariaDB
    start: LogOffset
    raw: bytes
    groups: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    files: list[str]

    def place(self, group: dict[str, Any], side: str) -> LogOffset:
        """Start or end of a group."""
        return LogOffset(self.files[group["file"]], group[side])


@pytest.fixture
def written(mariadb_11_server: PrivateMariaDB, fresh_schema: Callable[..., str]) -> Written:
    server = mariadb_11_server
    schema = fresh_schema(server)
    start = end_of_log(server)
    statements = [statement.format(s=schema) for statement in _STATEMENTS]
    server.sql(*statements[:8], "FLUSH BINARY LOGS", *statements[8:])
    # The second file's checkpoint event comes when the server likes.
    settled_end(server, end_of_log(server).file)
    raw = read_dump(server, start)
    decoder = decoded(raw, start)
    files = [file.name for file in decoder.files]
    return Written(server, start, raw, decoder.take_groups().to_pylist(), _rows(decoder), files)


def _rows(decoder: LogDecoder) -> list[dict[str, Any]]:
    rows = [row for images in decoder.take_images() for row in images.batch.to_pylist()]
    return sorted(rows, key=lambda row: int(row[SEQ]))


def _contents(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row[SIDE], row[OP], row["id"], row["v"]) for row in rows]


def test_a_dump_may_start_at_each_group(written: Written) -> None:
    assert len(written.groups) == 6
    assert {group["file"] for group in written.groups} == {0, 1}
    for number, group in enumerate(written.groups):
        at = written.place(group, "start")
        decoder = decoded(read_dump(written.server, at), at)
        found = decoder.take_groups().to_pylist()
        assert [one["sequence"] for one in found] == [one["sequence"] for one in written.groups[number:]]
        assert (found[0]["start"], found[0]["end"]) == (group["start"], group["end"])
        rest = [row for row in written.rows if row[GROUP] >= number]
        assert _contents(_rows(decoder)) == _contents(rest)
        assert decoder.at == end_of_log(written.server)


def test_a_dump_may_stop_at_each_group_and_nowhere_else(written: Written) -> None:
    for number, group in enumerate(written.groups):
        end = written.place(group, "end")
        decoder = decoded(written.raw, written.start, stop=end)
        assert (decoder.reached_stop, decoder.at) == (True, end)
        assert len(decoder.take_groups()) == number + 1
        upto = [row for row in written.rows if row[GROUP] <= number]
        assert _contents(_rows(decoder)) == _contents(upto)
        for inside in range(group["start"] + 1, group["end"], 7):
            with pytest.raises(CutMissed):
                decoded(written.raw, written.start, stop=LogOffset(end.file, inside))


def test_a_lost_beginning_or_end_of_a_group_is_noticed(written: Written) -> None:
    """Between them only the numbers of the packets tell: the place of each may be that of an annotation left out."""
    events = events_of(written.raw)
    lost_kinds = []
    for lost, event in enumerate(events):
        if kind_of(event) not in (_GTID, _XID, _XA_PREPARE):
            continue
        lost_kinds.append(kind_of(event))
        with pytest.raises(CorruptLog, match=r"^log binlog\.\d+:\d+: "):
            decoded(joined(events[:lost] + events[lost + 1 :]), written.start)
    assert sorted(lost_kinds) == [_XID] * 2 + [_XA_PREPARE] + [_GTID] * 6
