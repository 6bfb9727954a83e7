"""A shard's server that was moved, renamed or restored with its log is adopted; others are refused with a reason."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.adopt import adopt
from catchment.feed.moved import Comparison
from catchment.feed.runner import run_feed
from catchment.model.errors import ConfigError, Diverged, LeaseHeld, OtherServer
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.state.faults import Fault
from catchment.state.lease import hold
from catchment.state.store import Store
from catchment.watch.report import Observer
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import Steps, run_here
from tests.world.patience import until
from tests.world.prepared import prepare, roll_back_prepared
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

ROWS = "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"
MORE = (
    "UPDATE t SET v = v + 1 WHERE id IN (1, 3)",
    "DELETE FROM t WHERE id = 2",
    "INSERT INTO t VALUES (9, 9)",
)
Servers = dict[str, PrivateServer]


class Killed(Exception):
    """Stands for the end of the process at a fault."""


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    """A feed of two MariaDBs, which has caught up: `t` on both, `alone` on the last one."""
    run_here(monkeypatch)
    (tmp_path / "feed").mkdir()
    with PrivateServer(server_id=181, password="p") as a, PrivateServer(server_id=182, password="p") as b:
        yield begun(tmp_path / "feed", {"a": a, "b": b})


def begun(directory: Path, servers: Servers) -> Steps:
    for server in servers.values():
        server.sql("CREATE DATABASE d")
    steps = Steps(directory, servers, "d")
    for shard in servers:
        steps.sql(shard, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", ROWS)
    steps.sql(shard, "CREATE TABLE alone (id INT PRIMARY KEY, v INT)", "INSERT INTO alone VALUES (1, 1)")
    steps.must_be_equal("t", "id", "v")
    for shard in servers:
        steps.sql(shard, "UPDATE t SET v = 7 WHERE id = 1")
    steps.must_be_equal("t", "id", "v")
    return steps


def point(steps: Steps, **to: PrivateServer) -> None:
    """Have the feed file and the tests reach shards at other servers."""
    described = yaml.safe_load(steps.file.read_text())["source"]
    for shard in described["shards"]:
        server = to.get(shard["name"])
        if server is not None:
            shard.update(host=server.host, port=server.port, password=server.password)
    steps.set(source=described)
    steps.servers = {**steps.servers, **to}


@contextmanager
def copied(old: PrivateServer, directory: Path, server_id: int) -> Iterator[PrivateServer]:
    """Another server over a copy of the data and log of one that is stopped."""
    shutil.copytree(old.datadir, directory / "data")
    if isinstance(old, PrivateMySQL):
        (directory / "data" / "auto.cnf").unlink()
        new: PrivateServer = PrivateMySQL(
            old.build, datadir=directory / "data", password="p", server_id=server_id
        )
    else:
        new = PrivateServer(datadir=directory / "data", password="p", server_id=server_id)
    with new:
        yield new


def newest_epoch(steps: Steps) -> int:
    newest = EpochsTable(steps.feed.sink.path, "exact").newest()
    assert newest is not None
    return newest.manifest.epoch


@pytest.mark.promise("a server that was moved, renamed or restored with its log is adopted")
def test_a_moved_server_is_adopted_and_the_feed_goes_on(
    steps: Steps, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = steps.servers["a"]
    prepare(old, "'open'", "INSERT INTO d.t VALUES (20, 20)")
    steps.sql("a", "INSERT INTO t VALUES (4, 4)")
    steps.must_be_equal("t", "id", "v")
    before = newest_epoch(steps)
    steps.sql("a", *MORE)  # not read yet
    old.stop()
    with copied(old, tmp_path, server_id=191) as new:
        point(steps, a=new)
        with pytest.raises(OtherServer, match=r"catchment adopt FEED.yaml --shard a"):
            steps.run()
        capsys.readouterr()
        assert execute(["adopt", str(steps.file), "--shard", "a", "--dry-run"]) == 0
        assert "nothing was written" in capsys.readouterr().out
        assert newest_epoch(steps) == before
        assert execute(["adopt", str(steps.file), "--shard", "a"]) == 0
        said = capsys.readouterr().out
        for part in (
            "server_id 181",
            "server_id 191",
            "log file",
            "GTIDs",
            "the event that ends at",
            "XA PREPARE",
        ):
            assert part in said
        assert newest_epoch(steps) > before
        assert execute(["adopt", str(steps.file), "--shard", "a"]) == 0
        assert "nothing to adopt" in capsys.readouterr().out
        steps.must_be_equal("t", "id", "v")
        new.sql("XA COMMIT 'open'")
        steps.sql("a", "INSERT INTO t VALUES (10, 10)")
        steps.sql("b", "INSERT INTO t VALUES (10, 11)")
        steps.must_be_equal("t", "id", "v")
        assert ("a", 20) in steps.lake("t", "id")
        roll_back_prepared(new)


def test_a_moved_mysql_that_lost_its_uuid_is_adopted(
    mysql_80_build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here(monkeypatch)
    (tmp_path / "feed").mkdir()
    with PrivateMySQL(mysql_80_build, server_id=183, password="p") as old:
        steps = begun(tmp_path / "feed", {"a": old})
        old.stop()
        with copied(old, tmp_path, server_id=183) as new:
            point(steps, a=new)
            steps.sql("a", *MORE)
            found = adopt(steps.feed, "a")
            assert found.before.uuid != found.now.uuid
            steps.must_be_equal("t", "id", "v")


def test_a_copy_in_progress_goes_on_behind_an_adoption(steps: Steps, tmp_path: Path) -> None:
    """What was proven visible on the old server is proven again; GTIDs alone show the log of a feed of old."""
    old = steps.servers["a"]
    steps.sql("a", "INSERT INTO t SELECT seq, seq FROM seq_100_to_900")
    steps.set(
        name="again", sink={"path": str(tmp_path / "lake")}, copy={"chunk_rows_max": 10, "group_time": "0s"}
    )
    epochs = EpochsTable(tmp_path / "lake", "again")
    stop = threading.Event()
    run_feed(
        steps.feed, until_caught_up=False, observer=Observer(committed=lambda report: stop.set()), stop=stop
    )
    halfway = epochs.newest()
    assert halfway is not None
    assert any(0 < copy.rows < 800 and not copy.done for copy in halfway.manifest.cut.copies)
    old.stop()
    with copied(old, tmp_path, server_id=198) as new:
        point(steps, a=new)
        known = halfway.manifest.cut.positions["a"]
        assert known.event is not None
        endpoint = steps.feed.endpoints()[0]
        there = Comparison(endpoint, replace(known, event=None)).position()
        assert (there.at, there.server.server_id) == (known.at, 198)
        adopt(steps.feed, "a")
        newest = epochs.newest()
        assert newest is not None
        assert list(newest.manifest.cut.floors) == ["b"]
        steps.must_be_equal("t", "id", "v")


@pytest.mark.parametrize("lost", [False, True], ids=["store", "store lost"])
@pytest.mark.parametrize("copy", [False, True], ids=["its log", "a log of its own"])
def test_a_crash_at_every_point_of_an_adoption(steps: Steps, tmp_path: Path, lost: bool, copy: bool) -> None:
    old = steps.servers["a"]
    old.stop()
    with copied(old, tmp_path, server_id=192) as new:
        if copy:
            new.sql("RESET MASTER")
        point(steps, a=new)
        home = steps.file.parent
        for fault in (Fault.AFTER_MANIFEST, Fault.AFTER_APPLY, Fault.AFTER_EPOCH_ROW, None):
            kept = tmp_path / f"at {fault}"
            shutil.copytree(home, kept)

            def kill(place: Fault, fault: Fault | None = fault) -> None:
                if place is fault:
                    raise Killed

            if fault is not None:
                with pytest.raises(Killed):
                    adopt(steps.feed, "a", copy=copy, fault=kill)
            if lost:
                state = Path(steps.feed.state.get_secret_value().removeprefix("sqlite:///"))
                for file in state.parent.glob(f"{state.name}*"):
                    file.unlink()
            found = adopt(steps.feed, "a", copy=copy)
            assert copy or found.differs is None
            steps.sql("a", "UPDATE t SET v = v + 1")
            steps.renew("UPDATE t SET v = v + 1")
            steps.must_be_equal("t", "id", "v")
            # Once more from the state in front of the adoption.
            shutil.rmtree(home)
            shutil.copytree(kept, home)


def refused(steps: Steps, why: str, kind: type[Exception] = Diverged) -> None:
    """Adopting is refused with a reason, and nothing is written."""
    before = newest_epoch(steps)
    with pytest.raises(kind, match=why):
        adopt(steps.feed, "a")
    assert newest_epoch(steps) == before


def test_what_does_not_fit_is_refused(steps: Steps, tmp_path: Path) -> None:
    old, other = steps.servers["a"], steps.servers["b"]
    old.stop()
    shutil.copytree(old.datadir, tmp_path / "older")
    with pytest.raises(ConfigError, match="the feed has the shards a, b"):
        adopt(steps.feed, "c")
    old.start()
    for _ in range(3):
        steps.sql("a", "FLUSH BINARY LOGS", "UPDATE t SET v = v + 1")
    steps.must_be_equal("t", "id", "v")
    with PrivateServer(server_id=193, password="p") as fresh:  # an empty server
        point(steps, a=fresh)
        refused(steps, "it has no log file")
    point(steps, a=other, b=old)  # swapped
    refused(steps, "shards a and b are one server, server_id 182", ConfigError)
    point(steps, a=old, b=other)
    older = PrivateServer(datadir=tmp_path / "older", server_id=194, password="p")
    with older:  # an older backup: it has no such file, then one of another birth
        point(steps, a=older)
        refused(steps, "it has no log file")
        number = int(str(old.log_end()[0]).rpartition(".")[2])
        while int(str(older.log_end()[0]).rpartition(".")[2]) <= number:
            older.sql("FLUSH BINARY LOGS")
        for _ in range(40):
            older.sql("UPDATE d.t SET v = v + 1")
        refused(steps, "ends at|began at")
    old.stop()
    with copied(old, tmp_path / "reset", server_id=195) as reset:
        point(steps, a=reset)
        reset.sql("RESET MASTER")
        refused(steps, "it has no log file")
        for _ in range(10):
            reset.sql("FLUSH BINARY LOGS", *["UPDATE d.t SET v = v + 1"] * 9)
        refused(steps, "began at")


@contextmanager
def promoted(source: PrivateServer, server_id: int) -> Iterator[PrivateServer]:
    """A replica that has all of its source's rows and GTIDs, in a log of its own, and replicates no more."""
    login = f"MASTER_HOST = '{source.host}', MASTER_PORT = {source.port}, MASTER_USER = 'catchment'"
    settings = {"log_slave_updates": "ON"}
    with PrivateServer(server_id=server_id, password="p", settings=settings) as replica:
        replica.sql(
            f"CHANGE MASTER TO {login}, MASTER_PASSWORD = 'p', MASTER_USE_GTID = slave_pos", "START SLAVE"
        )
        at = source.sql("SELECT @@gtid_binlog_pos")[0][0]
        assert replica.sql(f"SELECT MASTER_GTID_WAIT('{at}', 60)") == [(0,)]
        replica.sql("STOP SLAVE")
        assert replica.sql("SELECT @@gtid_binlog_pos")[0][0] == at
        yield replica


@pytest.mark.promise("a replica that took over is adopted, and its shard's tables are copied again in place")
def test_a_promoted_replica_is_adopted_with_a_copy(
    steps: Steps, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --copy it is refused: it has the rows and the GTIDs, at other places of other files. A table that the
    shard does not have is followed on, and readers have the rows from before until the copy is done."""
    source = steps.servers["a"]
    before = steps.lake("t", "id", "v")
    newest = EpochsTable(steps.file.parent / "lake", "exact").newest()
    assert newest is not None
    born = newest.manifest.cut.positions["a"].born
    until("the next second", lambda: time.time() >= born + 1)  # a log tells its birth in whole seconds
    steps.sql("a", *MORE)  # of which the feed has read nothing
    with promoted(source, server_id=200) as replica:
        point(steps, a=replica)
        refused(steps, "its log file .* (began|ends) at .* --copy")
        for _ in range(20):
            replica.sql("UPDATE d.t SET v = v + 1")
        refused(steps, "its log file .* began at")
        command = ["adopt", str(steps.file), "--shard", "a", "--copy"]
        capsys.readouterr()
        assert execute([*command, "--dry-run"]) == 0
        said = capsys.readouterr().out
        assert "began at" in said
        assert "would be copied again" in said
        assert newest_epoch(steps) == newest.manifest.epoch
        assert execute(command) == 0
        assert "copies the shard's tables again" in capsys.readouterr().out
        row = EpochsTable(steps.file.parent / "lake", "exact").newest()
        assert row is not None
        assert [(one.table.name, one.epoch) for one in row.manifest.stale] == [("t", newest.manifest.epoch)]
        assert steps.lake("t", "id", "v") == before
        assert execute(command) == 0
        assert "nothing to adopt" in capsys.readouterr().out
        steps.sql("a", "UPDATE t SET v = v + 1")
        steps.sql("b", "UPDATE t SET v = v + 1", "INSERT INTO alone VALUES (2, 2)")
        steps.run()
        assert steps.lake("alone", "id", "v") == steps.source("alone", "id", "v")
        steps.renew("UPDATE t SET v = v + 1")
        steps.must_be_equal("t", "id", "v")
        point(steps, a=source)  # the old one comes back: it is another server now
        with pytest.raises(OtherServer, match="server_id 200"):
            steps.run()


@pytest.mark.promise("a run goes on with a server that is adopted, and the other shards go on meanwhile")
def test_a_run_adopts_a_promoted_replica_and_goes_on(
    steps: Steps, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is refused changes nothing, and does not end the run."""
    source, other = steps.servers["a"], steps.servers["b"]
    adopts = ["adopt", str(steps.file), "--shard", "a"]
    steps.sql("a", *MORE)
    with FeedRun(steps.feed) as run, promoted(source, server_id=201) as replica:
        run.wait_for_log(steps.servers)
        source.stop()
        point(steps, a=replica)
        replica.sql("UPDATE d.t SET v = v + 1")
        for command in (["apply", str(steps.file)], adopts):
            assert execute(command) == 6
            assert "refused: " in (said := capsys.readouterr().out)
            assert "catchment adopt FEED.yaml --shard a" in said
            steps.sql("b", "UPDATE t SET v = v + 1")
            run.wait_for_log({"b": other})
        assert execute([*adopts, "--copy"]) == 0
        said = capsys.readouterr().out
        assert "server_id 201" in said
        assert "the shard's tables are copied again" in said
        run.wait("the copy", lambda epochs: epochs[-1].cut.copied and not epochs[-1].stale)
        steps.sql("a", "UPDATE t SET v = v + 1")
        run.wait_for_log(steps.servers)
        assert steps.lake("t", "id", "v") == steps.source("t", "id", "v")
        assert steps.lake("alone", "id", "v") == steps.source("alone", "id", "v")


def test_a_run_of_one_shard_adopts_its_server_under_another_server_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_here(monkeypatch)
    (tmp_path / "feed").mkdir()
    with PrivateServer(server_id=184, password="p") as server:
        steps = begun(tmp_path / "feed", {"a": server})
        steps.sql("a", *MORE)
        with FeedRun(steps.feed) as run:
            run.wait_for_log(steps.servers)
            server.restart({"server_id": 185})
            server.sql("UPDATE d.t SET v = v + 1")
            steps.set(epoch={"interval": "70ms", "tick": "50ms"})
            assert execute(["apply", str(steps.file)]) == 0, (
                "the shard waits for a person, and the rest changes"
            )
            assert execute(["adopt", str(steps.file), "--shard", "a"]) == 0
            assert "the log goes on there" in capsys.readouterr().out
            run.wait_for_log(steps.servers)
            assert not run.epochs[-1].stale
            assert steps.lake("t", "id", "v") == steps.source("t", "id", "v")


def test_a_log_that_went_another_way_is_refused(steps: Steps, tmp_path: Path) -> None:
    """A file of the same birth whose end is older, and one whose bytes at the position are others."""
    old = steps.servers["a"]
    file, end = old.log_end()
    old.stop()
    shutil.copytree(old.datadir, tmp_path / "cut" / "data")
    log = tmp_path / "cut" / "data" / file
    whole = log.read_bytes()
    log.write_bytes(whole[: end - 60])
    with PrivateServer(datadir=tmp_path / "cut" / "data", server_id=196, password="p") as cut:
        point(steps, a=cut)
        refused(steps, "it is an older copy, or lost its end")
    other = bytearray(whole)
    other[end - 20] ^= 1
    log.write_bytes(bytes(other))
    with PrivateServer(datadir=tmp_path / "cut" / "data", server_id=197, password="p") as torn:
        point(steps, a=torn)
        refused(steps, "does not go on from there")


def test_a_feed_that_is_run_is_not_adopted(steps: Steps) -> None:
    with (
        closing(Store.open(steps.feed.state.get_secret_value(), "exact")) as store,
        hold(store),
        pytest.raises(LeaseHeld, match="is run by"),
    ):
        adopt(steps.feed, "a")
