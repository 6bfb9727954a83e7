"""A GTID that goes back, as gtid_strict_mode=OFF allows, leaves the log the same; a log that is another one is told
by the event in front of our position."""

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
    steps.sql("a", *BACK.values(), "INSERT INTO t VALUES (0, 0)")
    steps.must_be_equal("t", "id", "v")
    return steps


def gtids(steps: Steps) -> GtidList:
    newest = EpochsTable(steps.feed.sink.path, "exact").newest()
    assert newest is not None
    found = newest.manifest.cut.positions["a"].gtids
    assert isinstance(found, GtidList)
    return found


@pytest.mark.parametrize("back", BACK)
def test_a_feed_goes_on_behind_a_gtid_that_goes_back(steps: Steps, back: str) -> None:
    before = gtids(steps)
    for number in range(10, 13):
        steps.sql("a", BACK[back], f"INSERT INTO t VALUES ({number}, 1)", "UPDATE t SET v = v + 1")
        steps.must_be_equal("t", "id", "v")
    after = gtids(steps)
    assert after == GtidList.parse(str(steps.servers["a"].sql("SELECT @@gtid_binlog_pos")[0][0]))
    lower = {g.domain: g.sequence for g in after.gtids}
    assert any(lower[g.domain] <= g.sequence for g in before.gtids)


def test_a_feed_goes_on_when_the_log_was_played_into_its_own_server(steps: Steps, own: PrivateServer) -> None:
    steps.sql("a", "DELETE FROM t WHERE id > 0", "INSERT INTO t VALUES (1, 1)")
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


@pytest.mark.parametrize("strict", ["ON", "OFF"])
def test_a_file_that_was_purged_is_missed_where_gtids_may_have_come_back(
    own: PrivateServer, steps: Steps, strict: str
) -> None:
    """Played twice, a piece of log leaves the server at the GTID at which it stood, and its rows elsewhere."""
    steps.sql("a", "UPDATE t SET v = 3 WHERE id = 1")
    steps.must_be_equal("t", "id", "v")
    begin_anew(own)
    if strict == "ON":
        own.sql("SET GLOBAL gtid_strict_mode = ON")
        steps.must_be_equal("t", "id", "v")
        own.sql("SET GLOBAL gtid_strict_mode = OFF")
        return
    last = own.sql("SELECT @@gtid_binlog_pos")[0][0]
    number = next(g.sequence for g in GtidList.parse(str(last)).gtids if g.domain == 0)
    steps.sql("a", "UPDATE t SET v = 4", f"SET gtid_seq_no = {number}", "UPDATE t SET v = 5 WHERE id = 1")
    assert own.sql("SELECT @@gtid_binlog_pos")[0][0] == last
    begin_anew(own)
    steps.run()
    newest = EpochsTable(steps.feed.sink.path, "exact").newest()
    assert newest is not None
    assert "gtid_strict_mode=OFF GTIDs may come back" in newest.manifest.stale[0].reason
    dump(steps.file, "start", wait=0)
    steps.renew("CREATE TABLE other (id INT)", "DROP TABLE other")
    steps.must_be_equal("t", "id", "v")
