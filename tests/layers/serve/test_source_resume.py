"""A stream whose log was reset, or whose server is another one, is told so: also by a run that finds nothing new."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import Diverged, OtherServer
from catchment.model.position import LogOffset
from catchment.serve.spark_source.log_end import LogEnd
from catchment.serve.spark_source.offset import Offset
from tests.layers.serve.conftest import NAMES, Drive, MakeFeed
from tests.world.new_log_file import settled_end
from tests.world.patience import until

NAME = "m.kv"


@pytest.fixture(scope="module")
def running() -> Iterator[PrivateServer]:
    with PrivateServer(server_id=9) as server:
        yield server


@pytest.fixture
def server(running: PrivateServer) -> PrivateServer:
    """A server whose log has just been reset, and then rotated and written."""
    running.sql("DROP DATABASE IF EXISTS m", "RESET MASTER")
    _begin(running)
    return running


def _begin(server: PrivateServer) -> None:
    server.sql("CREATE DATABASE m", "CREATE TABLE m.kv (k INT PRIMARY KEY, v VARCHAR(20))")
    server.sql("INSERT INTO m.kv VALUES (1, 'a')", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    server.sql(*(f"INSERT INTO m.kv VALUES ({k}, 'a')" for k in range(2, 20)))


def _stands(drive: Drive, feed: Path) -> Offset:
    driver = drive(feed, NAME)
    driver.finish()
    found: Offset = json.loads(json.dumps(driver.offset))
    return found


def _state(offset: Offset) -> dict[str, Any]:
    found: dict[str, Any] = offset["cut"]["shards"][NAMES[0]]
    return found


def _with(offset: Offset, /, sealed: object = None, **changed: object) -> Offset:
    """The offset with another position, of another log perhaps."""
    state = _state(offset)
    state = {**state, "position": {**state["position"], **changed}, "sealed": sealed or state["sealed"]}
    return {**offset, "cut": {**offset["cut"], "shards": {NAMES[0]: state}}}


def test_a_reset_log_ends_a_run_that_finds_nothing_new(
    server: PrivateServer, make_feed: MakeFeed, drive: Drive
) -> None:
    feed = make_feed(server)
    offset = _stands(drive, feed)
    again = drive(feed, NAME, _with(offset, resets=None))
    again.finish()
    assert not again.batches, "offsets of old, without the count of resets, go on"
    born = _state(offset)["position"]["born"]
    until("another second has begun", lambda: server.sql("SELECT UNIX_TIMESTAMP()")[0][0] > born)
    server.sql("RESET MASTER")
    for old in (offset, _with(offset, resets=None)):
        with pytest.raises(Diverged, match="there is no file"):
            drive(feed, NAME, old).finish()
    # A file of the same name and a place that a group ends at, in a log that was reset.
    server.sql("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    server.sql(*(f"UPDATE m.kv SET v = 'b' WHERE k = {k}" for k in range(2, 20)))
    file, _ = server.log_end()
    end = settled_end(server, file)
    assert file == _state(offset)["position"]["at"]["file"]
    with pytest.raises(Diverged, match="was reset"):
        drive(feed, NAME, _with(offset, at={"file": file, "offset": end})).finish()
    # Without the count, the place tells. A last event as long as the old one is read, and is another one; else the dump
    # begins inside an event. A checkpoint event may come last, or an Xid.
    with pytest.raises(Diverged, match=r"was reset|the event that ends at .* is not the one"):
        drive(feed, NAME, _with(offset, resets=None, at={"file": file, "offset": end})).finish()


def test_a_reset_within_the_second_of_the_files_birth_is_noticed(
    server: PrivateServer, make_feed: MakeFeed, drive: Drive
) -> None:
    feed = make_feed(server)
    offset = _stands(drive, feed)
    server.sql("RESET MASTER", "INSERT INTO m.kv VALUES (20, 'b')")
    now = _state(_stands(drive, feed))
    # As it would be, had the file been born in the second of the old one's birth, with the same groups.
    there = now["position"]
    asked = {**_state(offset)["position"]["resets"], "asked": there["born"]}
    forged = _with(offset, now["sealed"], **{**there, "resets": asked})
    with pytest.raises(Diverged, match="reset"):
        drive(feed, NAME, forged).finish()
    drive(feed, NAME, _with(forged, resets=there["resets"])).finish()
    # Where the count does not tell, the event in front of the position does.
    with pytest.raises(Diverged, match=r"where it was read before|the event that ends at"):
        drive(feed, NAME, _with(forged, resets=there["resets"], event={"size": 31, "crc": 4711})).finish()


def test_another_server_at_the_address_is_refused(
    server: PrivateServer, make_feed: MakeFeed, drive: Drive
) -> None:
    with PrivateServer(server_id=10, password=server.password) as other:
        other.sql("CREATE DATABASE m", "CREATE TABLE m.kv (k INT PRIMARY KEY, v VARCHAR(20))")
        feed = make_feed(server)
        offset = _stands(drive, feed)
        feed.write_text(feed.read_text().replace(f"port: {server.port}", f"port: {other.port}"))
        for _ in range(2):  # its log ends before the position, then behind it
            with pytest.raises(OtherServer, match="is now server_id 10"):
                drive(feed, NAME, offset).finish()
            other.sql(*["FLUSH BINARY LOGS"] * 4)


def test_an_end_before_the_position_is_none(server: PrivateServer, make_feed: MakeFeed, drive: Drive) -> None:
    """A status may be torn at a rotation: the run then ends where a tick has it."""
    feed = make_feed(server)
    driver = drive(feed, NAME, _stands(drive, feed))
    server.sql("DELETE FROM m.kv WHERE k = 1")
    driver.planner.prepareForTriggerAvailableNow()
    driver.planner._live()._end = {NAMES[0]: LogEnd(LogOffset("binlog.000001", 4), ())}
    while driver.step():
        pass
    assert [row["_change_type"] for row in driver.rows] == ["delete"]
