"""The private server: keeps its data, gives the feed no more than it needs, leaves no orphans."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymysql
import pytest

from catchment.demo import install, server
from catchment.demo.server import PrivateServer
from catchment.model.errors import SourceError
from tests.world.patience import PATIENCE_SECONDS, until


def test_logs_rows_gives_the_feed_no_more_than_it_needs_and_leaves_nothing() -> None:
    with PrivateServer(server_id=7, domain_id=3, settings={"max_binlog_size": 4096}) as server:
        (values,) = server.sql(
            "SELECT @@log_bin, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata,"
            " @@server_id, @@gtid_domain_id, @@max_binlog_size"
        )
        assert values == (1, "ROW", "FULL", "FULL", 7, 3, 4096)
        assert server.sql("SELECT @@gtid_binlog_pos") == [("",)], "start-up must write no group to the log"
        must_have_no_more_privileges(server)
        pid, datadir = server.pid, server.datadir
        assert pid is not None
        assert (datadir / "mysql").is_dir()
    assert not datadir.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def must_have_no_more_privileges(server: PrivateServer) -> None:
    server.sql("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    feed = server.connect(user="catchment")
    with feed.cursor() as cursor:
        cursor.execute("SHOW MASTER STATUS")
        cursor.execute("SELECT * FROM shop.t")
        cursor.execute("XA RECOVER")
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            cursor.execute("INSERT INTO shop.t VALUES (1)")
    feed.close()
    (grant,) = server.sql("SHOW GRANTS FOR catchment")
    assert str(grant[0]).startswith("GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO")


def test_keeps_data_and_port_over_stop_crash_and_a_new_instance(tmp_path: Path) -> None:
    datadir = tmp_path / "data"
    with PrivateServer(datadir=datadir) as server:
        port = server.port
        server.sql("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
        server.sql("INSERT INTO shop.t VALUES (1)")
        server.kill9()
        assert server.pid is None
        server.start()
        server.sql("INSERT INTO shop.t VALUES (2)")
        server.restart({"max_binlog_size": 8192})
        assert server.port == port
        assert server.sql("SELECT @@max_binlog_size") == [(8192,)]
    with PrivateServer(datadir=datadir) as again:
        assert again.sql("SELECT id FROM shop.t ORDER BY id") == [(1,), (2,)]
        again.dump(tmp_path / "dump.sql", ["shop"])
    assert "INSERT INTO `t` VALUES\n(1),\n(2);" in (tmp_path / "dump.sql").read_text()


def test_a_server_started_by_a_thread_that_ends_stays() -> None:
    """The parent-death signal goes by thread; servers started in parallel must outlive their pool."""
    servers = [PrivateServer(server_id=n) for n in (1, 2)]
    try:
        with ThreadPoolExecutor(2) as pool:
            threads = list(pool.map(_start, servers))
        until(
            "the threads are gone",
            lambda: not any(Path(f"/proc/self/task/{thread}").exists() for thread in threads),
        )
        assert [server.sql("SELECT @@server_id") for server in servers] == [[(1,)], [(2,)]]
    finally:
        for server in servers:
            server.close()


def test_a_server_whose_port_another_took_in_the_same_moment_takes_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with PrivateServer() as first:
        second = PrivateServer(server_id=2)
        ports = iter([first.port, first.port, second.port])
        monkeypatch.setattr(server, "_free_port", lambda: next(ports))
        with second:
            assert second.sql("SELECT @@server_id") == [(2,)]
            assert second.port != first.port


def _start(server: PrivateServer) -> int:
    """Start a server; the kernel's number of the thread that did."""
    server.start()
    return threading.get_native_id()


_TWO_SERVERS = """
import sys
from catchment.demo.server import PrivateServer
for dies in (True, False):
    server = PrivateServer(dies_with_parent=dies).start()
    print(server.pid, server._run_dir, flush=True)
sys.stdin.read()
"""


def test_the_kernel_ends_the_server_with_its_parent_or_not() -> None:
    """One of two servers of a program dies with it. When it has ended, the other one is still there."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _TWO_SERVERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        told = [parent.stdout.readline().split() for _ in range(2)]
        parent.kill()
    dying, staying = (int(pid) for pid, _ in told)
    try:
        until("the server that dies with its parent ends", lambda: _ended(dying))
        assert not _ended(staying)
        os.kill(staying, signal.SIGKILL)
        until("the other one ends when it is killed", lambda: _ended(staying))
    finally:
        subprocess.run(["rm", "-r", "--", *(run_dir for _, run_dir in told)], check=True)


def test_a_missing_server_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(install, "_SBIN", str(tmp_path))
    with pytest.raises(SourceError, match="apt-get install mariadb-server"), PrivateServer():
        pass


def test_a_server_that_does_not_start_shows_its_log() -> None:
    said = r"(?s)did not start.*unknown variable 'no-such-option=1'"
    with pytest.raises(SourceError, match=said), PrivateServer(settings={"no_such_option": 1}):
        pass


def test_the_template_is_made_once_by_processes_that_race(tmp_path: Path) -> None:
    program = "import sys, pathlib, catchment.demo.install as i\ni.lay_out(pathlib.Path(sys.argv[1]))\n"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    racers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path / f"data{n}")], env=environment)
        for n in range(3)
    ]
    assert [racer.wait(PATIENCE_SECONDS) for racer in racers] == [0, 0, 0]
    assert all((tmp_path / f"data{n}" / "mysql" / "global_priv.MAD").exists() for n in range(3))
    (home,) = tmp_path.glob("catchment-mariadb-*")
    assert len([entry for entry in home.iterdir() if entry.is_dir()]) == 1


def _ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
