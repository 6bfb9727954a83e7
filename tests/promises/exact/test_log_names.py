"""A server is restarted with another base name for its log (log_bin), and keeps index and files: one log, unbroken."""

from pathlib import Path

import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.manifests import manifests, must_be_chain
from tests.promises.exact.steps import Steps, run_here
from tests.world.prepared import prepare
from tests.world.servers.builds import Build
from tests.world.servers.chosen import chosen_server
from tests.world.servers.launch import PrivateMySQL

ROWS = ("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)",)
KEY = ("id", "n")


def renamed(server: PrivateServer, name: str) -> None:
    """Restart the server with another base name of its log."""
    index = server.sql("SELECT @@log_bin_index")[0][0]
    server.restart({"log_bin": name, "log_bin_index": index})
    names = [str(file) for file, *_ in server.sql("SHOW BINARY LOGS")]
    assert len({file.rpartition(".")[0] for file in names}) > 1, names


def followed(server: PrivateServer, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A feed follows a log over three names, stopped and while it runs, and copies nothing again."""
    server.sql("CREATE DATABASE shop")
    run_here(monkeypatch)
    steps = Steps(directory, {"a": server}, "shop")
    steps.everywhere("CREATE TABLE t (id INT PRIMARY KEY, n INT)", *ROWS)
    steps.must_be_equal("t", *KEY)
    prepare(server, "'open'", "UPDATE shop.t SET n = 40 WHERE id = 4")
    steps.everywhere("UPDATE t SET n = 10 WHERE id = 1", "DELETE FROM t WHERE id = 2")
    renamed(server, "other")
    steps.everywhere(
        "FLUSH BINARY LOGS", "UPDATE t SET n = n + 1 WHERE id = 1", "INSERT INTO t VALUES (6, 6)"
    )
    assert execute(["doctor", str(steps.file)]) == 0
    steps.must_be_equal("t", *KEY)
    server.sql("XA COMMIT 'open'")
    steps.everywhere("ALTER TABLE t ADD m INT NOT NULL DEFAULT 7", "UPDATE t SET m = 8 WHERE id = 3")
    steps.must_be_equal("t", *KEY, "m")
    with FeedRun(steps.feed) as run:
        steps.everywhere("UPDATE t SET n = n + 1")
        run.wait_for_log({"a": server})
        steps.everywhere("UPDATE t SET n = n + 1")
        renamed(server, "binlog")  # the name from before, with greater numbers
        steps.everywhere("UPDATE t SET n = n + 1", "INSERT INTO t VALUES (7, 7, 7)")
        run.wait_for_log({"a": server})
        renamed(server, "a-third.name")
        steps.everywhere("UPDATE t SET n = n + 1")
        run.wait_for_log({"a": server})
    steps.must_be_equal("t", *KEY, "m")
    must_be_chain(manifests(steps))
    assert not [one for manifest in manifests(steps) for one in manifest.stale]


@pytest.mark.promise(
    "a log that changes its base name is followed, where the server's index lists it unbroken"
)
def test_a_log_is_followed_to_files_of_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with chosen_server(server_id=151) as server:
        followed(server, tmp_path, monkeypatch)


@pytest.mark.wide
def test_also_on_a_mysql_whose_log_does_not_name_columns(
    mysql_80_build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"binlog_row_metadata": "MINIMAL"}
    with PrivateMySQL(mysql_80_build, server_id=152, settings=settings) as server:
        followed(server, tmp_path, monkeypatch)
