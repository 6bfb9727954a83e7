"""Torn snapshots: FLUSH BINARY LOGS in a hold pairs the new file's name with the old file's offset."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.seal import newest_sealed
from catchment.model.position import LogOffset
from catchment.source.offsets import snapshot_offset, snapshot_session
from tests.promises.hidden.conftest import with_tables
from tests.promises.hidden.follow import Follower, place
from tests.promises.hidden.judge import Base, judge, take_base
from tests.promises.hidden.source import endpoint
from tests.world.held import flush_logs_in_hold, held_commit, held_group
from tests.world.log_groups import Place
from tests.world.new_log_file import settled_end

pytestmark = pytest.mark.mariadb(
    "its snapshot positions and checkpoint events; MySQL's holds are in test_mysql.py"
)

_FILLING = 1500


@pytest.fixture
def server(large: PrivateServer) -> Iterator[PrivateServer]:
    with with_tables(large):
        yield large


def _tell(writer: int, padding: int = 0) -> str:
    """A transaction whose length in the log grows with `padding`: the log keeps the statement's text."""
    return f"UPDATE d.told SET n = n + 1 WHERE writer = {writer} /* {'p' * padding} */"


@dataclass(frozen=True)
class _Torn:
    """`offset` is torn; the log it names ends at `end` once the checkpoint event has come."""

    offset: LogOffset
    end: int


def _tear(server: PrivateServer) -> _Torn:
    """Take a torn snapshot; another try when the checkpoint event has come first."""
    session = snapshot_session(endpoint(server))
    try:
        for _ in range(10):
            server.sql("FLUSH BINARY LOGS", _tell(9, _FILLING))
            held = held_commit(server, _tell(8))
            old = server.log_end()
            flush = flush_logs_in_hold(server)
            held.release()
            offset = snapshot_offset(session)
            flush.finish()
            if offset.file > old[0] and offset.offset == old[1]:
                return _Torn(offset, settled_end(server, offset.file))
    finally:
        session.close()
    raise AssertionError("no snapshot was torn in ten holds")


def _length(server: PrivateServer, transactions: int) -> int:
    """Bytes in the log of so many transactions held together, without padding."""
    server.sql("FLUSH BINARY LOGS")
    begin = settled_end(server, server.log_end()[0])
    for commit in held_group(server, [_tell(n) for n in range(transactions)]):
        commit.release()
    file, end = server.log_end()
    events = server.sql(f"SHOW BINLOG EVENTS IN '{file}'")
    assert [event[2] for event in events].count("Gtid") == transactions
    return end - begin


def _skipping(server: PrivateServer, *, on_credit: bool) -> tuple[Base, Follower]:
    """Plan a cut at a torn offset, let the log grow through just that offset, and go on."""
    length = _length(server, 1)
    base = take_base(server)
    follower = Follower(server, on_credit=on_credit)
    try:
        torn = _tear(server)
        assert torn.end < torn.offset.offset
        assert not follower.visit(torn.offset), "a cut beyond the log was accepted"
        padding = torn.offset.offset - torn.end - length
        held_commit(server, _tell(7, padding)).release()
        assert server.log_end() == place(torn.offset)
        server.sql(_tell(6))
        assert follower.visit(LogOffset(*server.log_end()))
    finally:
        follower.close()
    return base, follower


def must_skip_nothing_and_seal_nothing(server: PrivateServer) -> None:
    """A torn cut is planned again; one that others reach by chance seals nothing."""
    with with_tables(server):
        base, follower = _skipping(server, on_credit=False)
        assert follower.seen.missed == 1
        verdict = judge(server, base, follower.seen)
        assert verdict.wrong_segments == []
        assert verdict.wrong_claims == []
    with with_tables(server):
        base, follower = _reached_by_others(server)
        verdict = judge(server, base, follower.seen)
        assert verdict.claims > 1
        assert verdict.wrong_claims == []
        assert verdict.wrong_segments == []


@pytest.mark.promise("a wrong binlog position from the server is detected")
def test_a_torn_snapshot_skips_no_group_and_seals_nothing(large: PrivateServer) -> None:
    must_skip_nothing_and_seal_nothing(large)


def test_the_same_in_smaller_files(small: PrivateServer) -> None:
    must_skip_nothing_and_seal_nothing(small)


def test_a_dump_from_an_unverified_offset_skips_groups(server: PrivateServer) -> None:
    """The proof that a torn cut on credit would be found: the server serves such a dump without a word."""
    base, follower = _skipping(server, on_credit=True)
    assert judge(server, base, follower.seen).wrong_segments


def test_chunks_of_a_torn_cut_inside_an_event_fail_nothing(server: PrivateServer) -> None:
    """A group proves a nearer floor by a dump from its cut, which nobody has verified yet."""
    base = take_base(server)
    follower = Follower(server)
    try:
        torn = _tear(server)
        server.sql("UPDATE d.t SET v = REPEAT('x', 300)", _tell(7), _tell(6))
        assert not follower.visit(torn.offset, with_chunks=True)
        assert follower.visit(LogOffset(*server.log_end()), with_chunks=True)
    finally:
        follower.close()
    verdict = judge(server, base, follower.seen)
    assert verdict.chunks > 0
    assert verdict.wrong_chunks == []
    assert verdict.wrong_segments == []


def _reached_by_others(server: PrivateServer) -> tuple[Base, Follower]:
    """Two held transactions end at just the offset of a snapshot that was torn before they were logged."""
    length = _length(server, 2)
    base = take_base(server)
    follower = Follower(server)
    try:
        torn = _tear(server)
        padding = torn.offset.offset - torn.end - length
        commits = held_group(server, [_tell(0), _tell(1, padding)])
        assert follower.visit(torn.offset), "a group ends there: as a cut it is as good as any"
        assert all(commit.held for commit in commits)
        for commit in commits:
            commit.release()
        assert follower.visit(LogOffset(*server.log_end()))
    finally:
        follower.close()
    return base, follower


def test_a_seal_by_one_snapshot_alone_would_be_wrong(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof that a torn seal would be found."""

    def careless(
        known: LogOffset, start: LogOffset, snapshot: LogOffset, *facts: object, **xa: object
    ) -> LogOffset | None:
        return newest_sealed(LogOffset(snapshot.file, 4), None, snapshot, *facts, **xa)  # type: ignore[arg-type]

    monkeypatch.setattr("catchment.source.prove.newest_sealed", careless)
    base, follower = _reached_by_others(server)
    assert judge(server, base, follower.seen).wrong_claims


def test_the_clock_goes_on_after_a_torn_tick(server: PrivateServer) -> None:
    """The next commit, or the checkpoint event, takes it back to an offset before the torn one."""
    base = take_base(server)
    follower = Follower(server)
    try:
        for _ in range(3):
            _tear(server)
            server.sql(_tell(5))
            while place(follower.at.at) < Place(*server.log_end()):
                follower.step(with_chunks=True)
    finally:
        follower.close()
    verdict = judge(server, base, follower.seen)
    assert verdict.wrong_segments == []
    assert verdict.wrong_chunks == []
