"""Segments between any two places of a log, and first cuts beside XA."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.work import SegmentReceipt
from catchment.model.errors import CutMissed, Unsupported
from catchment.model.position import LogOffset, Position, Xid
from catchment.readers.changes import read_segment
from catchment.source.first_cut import originate
from catchment.source.offsets import open_xa
from catchment.source.session import Session
from tests.promises.hidden.follow import Follower, place
from tests.promises.hidden.source import endpoint
from tests.world.held import Background, hold_commits, release
from tests.world.log_groups import Place
from tests.world.patience import PATIENCE_SECONDS, until

_OUTSIDE_GROUPS = {"Format_desc", "Gtid_list", "Previous_gtids", "Binlog_checkpoint", "Rotate"}


def _places(server: PrivateServer, start: Place) -> tuple[list[Place], list[Place]]:
    """Ends of all events from `start` on: those between groups, and those inside one."""
    between, inside = [start], list[Place]()
    for file, *_ in server.sql("SHOW BINARY LOGS"):
        if file < start.file:
            continue
        for _, _, kind, _, end, _ in server.sql(f"SHOW BINLOG EVENTS IN '{file}'"):
            at = Place(file, end)
            if at > start:
                (between if kind in _OUTSIDE_GROUPS or kind == "Xid" else inside).append(at)
    return between, inside


def _read(follower: Follower, start: Position, stop: Place) -> SegmentReceipt:
    follower.at = start
    return read_segment(follower.segment(LogOffset(*stop)))


@pytest.mark.promise("a segment of the log ends only between two transactions")
def test_a_segment_stops_between_any_two_groups_and_nowhere_else(server: PrivateServer) -> None:
    """Right after a checkpoint event, a rotation, the head of a file: nothing is skipped or read twice."""
    follower = Follower(server)
    follower.close()
    first = follower.at
    for n in range(40):
        server.sql(f"INSERT INTO d.t VALUES ({2000 + n}, REPEAT('x', 400))")
    between, inside = _places(server, place(first.at))
    files = {at.file for at in between}
    assert len(files) > 4
    groups, position = 0, first
    for start, stop in pairwise(between):
        receipt = _read(follower, position, stop)
        assert receipt.groups <= 1, f"{start} to {stop}"
        groups += receipt.groups
        position = receipt.reached
        assert place(position.at) == stop
    assert groups == 40
    assert _read(follower, first, between[-1]).reached.gtids == position.gtids
    for stop in inside[::7]:
        with pytest.raises(CutMissed):
            _read(follower, first, stop)
    with pytest.raises(CutMissed):
        _read(follower, position, Place(between[-1].file, between[-1].offset + 1))


def test_a_first_cut_waits_for_open_xa_and_is_refused(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catchment.source.first_position.XA_WAIT_SECONDS", 0.3)
    xid = secrets.token_hex(4)
    server.sql(
        f"XA START '{xid}'", "INSERT INTO d.t VALUES (5000, 'xa')", f"XA END '{xid}'", f"XA PREPARE '{xid}'"
    )
    with pytest.raises(Unsupported, match=xid):
        originate("f", {"a": endpoint(server)}, lambda table: table.schema == "d", 0)
    server.sql(f"XA ROLLBACK '{xid}'")
    originate("f", {"a": endpoint(server)}, lambda table: table.schema == "d", 0)


def test_a_first_cut_waits_for_an_xa_commit_that_is_held(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XA COMMIT stands in the log, its rows are in no SELECT: neither log nor chunks would bring them."""
    listed: list[list[Xid]] = []

    def asked(session: Session) -> list[Xid]:
        listed.append(open_xa(session))
        return listed[-1]

    monkeypatch.setattr("catchment.source.first_position.open_xa", asked)
    server.sql("XA START 'x'", "INSERT INTO d.t VALUES (5000, 'xa')", "XA END 'x'", "XA PREPARE 'x'")
    hold_commits(server)
    before = server.log_end()
    commit = Background(server, ["XA COMMIT 'x'"])
    commit.start()
    until("an XA COMMIT in the log", lambda: server.log_end() != before)
    assert commit.is_alive()
    with ThreadPoolExecutor(1) as pool:
        origin = pool.submit(originate, "f", {"a": endpoint(server)}, lambda table: table.schema == "d", 0)
        until("XA RECOVER, asked twice", lambda: origin.done() or len(listed) >= 2)
        assert all(listed)
        assert not origin.done(), "a first cut was taken although rows are in neither log nor SELECT"
        release(server)
        commit.finish()
        manifest = origin.result(timeout=PATIENCE_SECONDS)
    (largest,) = [c.born_after for c in manifest.cut.copies if c.table.name == "t"]
    assert largest == (5000,)
    assert place(manifest.cut.positions["a"].at) >= Place(*before), (
        "the feed would meet rows of XA, which it refuses"
    )
