"""A log is read as its consumer pulls: who stops, delays or leaves, on real servers."""

import gc
from collections.abc import Callable, Iterator
from itertools import islice

import pyarrow as pa
import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Unsupported
from catchment.model.gtidset import GtidSet
from catchment.model.image import GROUP, SEQ
from catchment.model.position import GtidList, LogOffset, Position
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.rewind.states import without_voids
from catchment.source import dump, log
from catchment.source.log import EndedGroups, LogReader, Piece, read_log
from catchment.source.session import connect
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Ddl, Images
from catchment.wire.packets.statements import dump_packet
from tests.world.patience import until
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

T = TableId("d", "t")
# More than sockets hold, so that the server is still sending while nobody pulls.
ROWS, ROW_BYTES = 60, 700_000
READ_BYTES = 1 << 20
# Rows that a savepoint takes back are in the log where such a table was written behind it. MySQL refuses that.
UNTRANSACTED = "INSERT INTO d.untransacted VALUES (1)"
# Each leads to groups, facts, void rows or a new file.
WRITES = (
    ["INSERT INTO d.s VALUES (1, 'a'), (2, 'b')"],
    ["BEGIN", "INSERT INTO d.s VALUES (3, 'c')", "SAVEPOINT a", "INSERT INTO d.s VALUES (4, 'd'), (5, 'e')",
     UNTRANSACTED,
     "ROLLBACK TO SAVEPOINT a", "UPDATE d.s SET v = 'f' WHERE id = 1", "COMMIT"],
    ["ALTER TABLE d.s ADD KEY kv (v)"],
    ["FLUSH BINARY LOGS"],
    ["XA START 'x'", "INSERT INTO d.s VALUES (6, 'g')", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"],
    ["DELETE FROM d.s WHERE id IN (1, 3)"],
    ["FLUSH BINARY LOGS"],
    ["UPDATE d.s SET id = id + 10"],
)  # fmt: skip


class Foreign(Exception):
    """An error of a consumer."""


class Shard:
    """A server whose log holds `ROWS` large rows in groups of their own, and what a reader asks of it."""

    def __init__(self, server: PrivateServer) -> None:
        self.server = server
        self.endpoint = Endpoint("s", server.host, server.port, "catchment", server.password)
        with connect(self.endpoint) as session:
            self.known = session.server
        server.sql("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT)")
        self.start = LogOffset(*server.log_end())
        server.sql(*(f"INSERT INTO d.t VALUES ({n}, REPEAT('x', {ROW_BYTES}))" for n in range(ROWS)))
        self.stop = LogOffset(*server.log_end())

    def reader(self) -> LogReader:
        """Of the large rows."""
        return read_log(self.endpoint, self.known, self.start, self.stop, Wanted({T: ("id",)}))

    def dumps(self) -> int:
        """How many dumps the server's list of sessions shows."""
        sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        return int(self.server.sql(sql)[0][0])

    def writes(self) -> bool:
        """Whether the server is sending a dump to a socket that takes no more."""
        sql = "SELECT state FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        return [row[0] for row in self.server.sql(sql)] in (["Writing to net"], ["Sending to client"])

    def await_no_dump(self) -> None:
        """The server notices when it sends: it is in the midst of that."""
        until("the session of the dump is gone", lambda: not self.dumps())


@pytest.fixture(scope="module", params=["mariadb", pytest.param("mysql_80_build", marks=pytest.mark.wide)])
def shard(request: pytest.FixtureRequest) -> Iterator[Shard]:
    if request.param == "mariadb":
        with PrivateServer(server_id=161) as mariadb:
            yield Shard(mariadb)
        return
    build: Build = request.getfixturevalue(request.param)
    with PrivateMySQL(build, server_id=162) as mysql:
        yield Shard(mysql)


def closed(reader: LogReader) -> None:
    next(reader)
    reader.close()
    assert list(reader) == [], "no piece follows"


def left_by_with(reader: LogReader) -> None:
    with reader:
        next(reader)


def fail(reader: LogReader, error: Exception) -> None:
    """A consumer that fails at the first piece."""
    with reader:
        for _ in reader:
            raise error


def left_by_an_error(reader: LogReader) -> None:
    foreign = Foreign()
    with pytest.raises(Foreign) as raised:
        fail(reader, foreign)
    assert raised.value is foreign


def forgotten(reader: LogReader) -> None:
    next(reader)


@pytest.mark.parametrize("leave", [closed, left_by_with, left_by_an_error, forgotten])
def test_the_session_is_gone_when_the_consumer_leaves(
    shard: Shard, leave: Callable[[LogReader], None]
) -> None:
    gc.disable()  # what waits for it would keep the session for a while
    try:
        reader = shard.reader()
        assert shard.dumps() == 0, "nothing is asked before the first piece"
        first = next(reader)
        assert isinstance(first, Images)
        assert shard.dumps() == 1
        leave(reader)
        del reader
        shard.await_no_dump()
    finally:
        gc.enable()


def test_an_error_of_the_consumer_is_not_taken_for_one_of_the_shard(shard: Shard) -> None:
    full = OSError(28, "No space left on device")
    with pytest.raises(OSError, match="No space left") as raised:
        fail(shard.reader(), full)
    assert raised.value is full
    shard.await_no_dump()


def test_an_error_of_what_is_asked_meanwhile_ends_the_session(shard: Shard) -> None:
    def on_ddl(ddl: Ddl) -> dict[TableId, None]:
        raise Unsupported(f"log {ddl.at}: of the test")

    start = LogOffset(shard.start.file, 4)
    wanted = Wanted({T: ("id",)}, on_ddl=on_ddl)
    reader = read_log(shard.endpoint, shard.known, start, shard.stop, wanted)
    with pytest.raises(Unsupported, match="of the test"):
        next(reader)
    shard.await_no_dump()
    assert list(reader) == []


def test_a_consumer_that_delays_holds_what_is_in_hand_and_no_more(shard: Shard) -> None:
    """Read, and not handed on yet, are as many bytes as are taken at once, one reading of the socket, and one row."""
    handed_on = ended = 0
    with shard.reader() as reader:
        for piece in reader:
            read_bytes = reader.stretch.read_bytes
            if isinstance(piece, Images):
                assert read_bytes - handed_on <= log.TAKE_BYTES + READ_BYTES + 2 * ROW_BYTES
                handed_on += piece.batch.nbytes
            else:
                ended += 1
            if ended == 1:
                until("the server waits, since the socket is full", shard.writes)
                assert reader.stretch.read_bytes == read_bytes
        assert handed_on >= ROWS * ROW_BYTES
    assert ended >= ROWS * ROW_BYTES // (log.TAKE_BYTES + READ_BYTES + 2 * ROW_BYTES)
    shard.await_no_dump()


def test_a_pause_is_longer_than_the_server_waits_by_default(shard: Shard) -> None:
    """When the server has given up another dump that nobody reads, which began later, it still waits for this one."""
    ((before,),) = shard.server.sql("SELECT @@GLOBAL.net_write_timeout")
    shard.server.sql("SET GLOBAL net_write_timeout = 1")
    try:
        with shard.reader() as reader, connect(shard.endpoint) as other:
            rows = sum(piece.batch.num_rows for piece in islice(reader, 1))
            checksums = "@@global.binlog_checksum"
            other.run(
                f"SET @master_binlog_checksum = {checksums}, @source_binlog_checksum = {checksums},"
                " @mariadb_slave_capability = 4"
            )
            other.sock.sendall(dump_packet(shard.start))
            until("the other dump has begun", lambda: shard.dumps() == 2)
            until("the server has given one up", lambda: shard.dumps() == 1)
            rows += sum(read.batch.num_rows for read in reader.images())
            other.abandon()
    finally:
        shard.server.sql(f"SET GLOBAL net_write_timeout = {before}")
    assert rows == ROWS
    assert reader.stretch.reached_stop


def test_the_consumer_has_its_turn_where_the_log_holds_nothing_for_it(
    shard: Shard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "TURN_BYTES", 5 << 20)
    turns = []
    with read_log(shard.endpoint, shard.known, shard.start, shard.stop, Wanted()) as reader:
        for piece in reader:
            assert isinstance(piece, EndedGroups)
            turns.append(reader.stretch.read_bytes)
    assert max(b - a for a, b in zip([0, *turns], turns, strict=False)) <= (5 << 20) + READ_BYTES
    assert len(turns) >= ROWS * ROW_BYTES // ((5 << 20) + READ_BYTES)


Row = tuple[int, int, tuple[object, ...]]


def counted(pieces: list[Piece], stretch: Stretch) -> list[Row]:
    """Group, number and row of the images that count in a stretch, in order."""
    found = []
    for piece in pieces:
        if isinstance(piece, Images):
            images = without_voids(pa.Table.from_batches([piece.batch]), stretch.voids)
            for row in images.to_pylist():
                group, number = row.pop(GROUP), row.pop(SEQ)
                if group < stretch.groups:
                    found.append((group, number, tuple(row.values())))
    return sorted(found, key=lambda row: row[1])


def summary(*stretches: Stretch) -> list[object]:
    """What stretches that join amount to."""
    last = stretches[-1]
    return [
        last.at,
        last.last_event,
        last.whole,
        sum(stretch.groups for stretch in stretches),
        [(type(fact), fact.at) for stretch in stretches for fact in stretch.facts],
        [(group.kind, group.start, group.end) for stretch in stretches for group in stretch.xa],
        {domain: gtid for stretch in stretches for domain, gtid in stretch.newest.items()},
        str(GtidSet().union(*(stretch.named for stretch in stretches[:1])).union(last.named)),
    ]


@pytest.mark.parametrize("read_bytes", [97, 700])
def test_who_leaves_and_goes_on_has_the_same(
    shard: Shard, monkeypatch: pytest.MonkeyPatch, read_bytes: int
) -> None:
    """A reader that leaves at any of its pieces, also in the midst of a group, and another one from there on."""
    shard.server.sql("DROP TABLE IF EXISTS d.s", "CREATE TABLE d.s (id INT PRIMARY KEY, v VARCHAR(9))")
    shard.server.sql("CREATE TABLE IF NOT EXISTS d.untransacted (id INT) ENGINE = MyISAM")
    shard.server.sql("FLUSH BINARY LOGS")
    start = LogOffset(*shard.server.log_end())
    for statements in WRITES:
        shard.server.sql(*(s for s in statements if s != UNTRANSACTED or not shard.known.mysql))
    stop = LogOffset(*shard.server.log_end())
    monkeypatch.setattr(log, "TAKE_BYTES", 0)
    monkeypatch.setattr(dump, "_READ_BYTES", read_bytes)
    wanted = Wanted({TableId("d", "s"): ("id",)}, before="full")

    def reader(at: LogOffset | Position) -> LogReader:
        return read_log(shard.endpoint, shard.known, at, stop, wanted)

    with reader(start) as at_once:
        pieces = list(at_once)
    whole = at_once.stretch
    rows = [row for _, _, row in counted(pieces, whole)]
    assert len(rows) >= 12
    assert whole.voids or shard.known.mysql
    assert len(pieces) > len(whole.files) == 3
    places, inside = set(), 0
    for taken in range(0, len(pieces), 1 if read_bytes > 500 else 5):
        with reader(start) as first:
            head = list(islice(first, taken))
        left = first.stretch
        gtids = GtidSet() if shard.known.mysql else GtidList()
        with reader(Position(left.at, 0, shard.known, gtids, event=left.last_event)) as second:
            tail = list(second)
        rest = second.stretch
        joined = counted(head, left) + counted(tail, rest)
        assert [row for _, _, row in joined] == rows, left.at
        assert summary(left, rest) == summary(whole), left.at
        places.add(left.at)
        inside += sum(piece.batch.num_rows for piece in head if isinstance(piece, Images)) > len(
            counted(head, left)
        )
    assert len(places) > 5
    assert inside > 0
