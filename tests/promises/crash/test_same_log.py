"""A log is the same although GTIDs in it go back or a file of it is gone, as far as that can be shown; a log that is
another one is told, although it begins alike."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.feed.dump import dump
from catchment.model.position import GtidList
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.exact.steps import Steps, run_here
from tests.world.purged import begin_anew

BACK = {
    "the same server": "SET gtid_seq_no = 5",
    "another server_id": "SET server_id = 77, gtid_seq_no = 4",
    "another domain": "SET gtid_domain_id = 3, gtid_seq_no = 9",
}


@pytest.fixture(scope="module")
def own() -> Iterator[PrivateServer]:
    """A MariaDB into whose log these tests write GTIDs that were there before."""
    with PrivateServer(server_id=141) as server:
        yield server


@pytest.fixture
def steps(
    own: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    run_here(monkeypatch)
    steps = Steps(tmp_path, {"a": own}, fresh_schema(own))
    steps.sql("a", "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    return steps


def gtids(steps: Steps) -> GtidList:
    newest = EpochsTable(steps.feed.sink.path, "exact").newest()
    assert newest is not None
    found = newest.manifest.cut.positions["a"].gtids
    assert isinstance(found, GtidList)
    return found


def why_stale(steps: Steps) -> str:
    steps.run()
    newest = EpochsTable(steps.feed.sink.path, "exact").newest()
    assert newest is not None
    return newest.manifest.stale[0].reason


def test_a_feed_goes_on_behind_gtids_that_go_back(steps: Steps, own: PrivateServer) -> None:
    """A session may set any (gtid_strict_mode=OFF), and so does a log that is played into its own server."""
    for domain in (0, 3):
        steps.sql(
            "a", f"SET gtid_domain_id = {domain}, gtid_seq_no = 50", f"INSERT INTO t VALUES (-{domain}, 0)"
        )
    steps.must_be_equal("t", "id", "v")
    before = {g.domain: g.sequence for g in gtids(steps).gtids}
    for number, back in enumerate(BACK.values(), 10):
        steps.sql("a", "UPDATE t SET v = v + 1", back, f"INSERT INTO t VALUES ({number}, 1)")
        steps.must_be_equal("t", "id", "v")
        after = gtids(steps)
        assert after == GtidList.parse(str(own.sql("SELECT @@gtid_binlog_pos")[0][0]))
        assert any(g.sequence < before[g.domain] for g in after.gtids)
    steps.sql("a", "DELETE FROM t", "INSERT INTO t VALUES (1, 1)")
    steps.must_be_equal("t", "id", "v")
    file, start = own.log_end()
    steps.sql("a", "UPDATE t SET v = 8 WHERE id = 1", "INSERT INTO t VALUES (7, 7)")
    stop = own.log_end()[1]
    steps.must_be_equal("t", "id", "v")
    steps.sql("a", "DELETE FROM t", "INSERT INTO t VALUES (1, 1)")
    steps.must_be_equal("t", "id", "v")
    where = [f"--start-position={start}", f"--stop-position={stop}", str(own.datadir / file)]
    log = subprocess.run(["mariadb-binlog", "--no-defaults", *where], capture_output=True, check=True).stdout
    client = ["mariadb", f"--defaults-file={own.defaults_file}"]
    subprocess.run(client, input=log, capture_output=True, check=True)
    steps.must_be_equal("t", "id", "v")
    assert steps.lake("t", "id") == [("a", 1), ("a", 7)]


@pytest.mark.promise(
    "the old log files of an idle MariaDB may be purged while the feed is stopped, if its GTIDs only grow"
)
def test_a_file_that_held_nothing_more_is_missed_only_where_gtids_may_have_come_back(
    own: PrivateServer, steps: Steps
) -> None:
    """Played twice, a piece of log leaves the server at the GTID at which it stood, and its rows elsewhere."""
    steps.sql("a", "UPDATE t SET v = 3 WHERE id = 1")
    steps.must_be_equal("t", "id", "v")
    begin_anew(own)
    own.sql("SET GLOBAL gtid_strict_mode = ON")
    steps.must_be_equal("t", "id", "v")
    own.sql("SET GLOBAL gtid_strict_mode = OFF")
    steps.sql("a", "UPDATE t SET v = 6 WHERE id = 1")
    steps.must_be_equal("t", "id", "v")
    last = own.sql("SELECT @@gtid_binlog_pos")[0][0]
    number = next(g.sequence for g in GtidList.parse(str(last)).gtids if g.domain == 0)
    steps.sql("a", "UPDATE t SET v = 4", f"SET gtid_seq_no = {number}", "UPDATE t SET v = 5 WHERE id = 1")
    assert own.sql("SELECT @@gtid_binlog_pos")[0][0] == last
    begin_anew(own)
    assert "gtid_strict_mode=OFF GTIDs may come back" in why_stale(steps)
    dump(steps.file, "start", wait=0)
    steps.renew("CREATE TABLE other (id INT)", "DROP TABLE other")
    steps.must_be_equal("t", "id", "v")


def test_a_log_that_was_reset_before_a_restart_may_begin_at_the_same_gtids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    with PrivateServer(server_id=121, settings={"gtid_strict_mode": "ON"}) as server:
        server.sql("CREATE DATABASE d")
        steps = Steps(tmp_path, {"a": server}, "d")
        steps.sql("a", "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "RESET MASTER")
        steps.sql("a", "INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 1)")
        steps.run()
        steps.sql("a", "RESET MASTER", "UPDATE t SET v = 5", "UPDATE t SET v = 6")
        begin_anew(server)  # the file of the position is another log's, and gone
        server.restart()
        assert "the server was restarted since" in why_stale(steps)
