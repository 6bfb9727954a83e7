"""XA transactions: refused when prepared before the first cut; else their rows count where they are committed,
whatever lies between: epochs, chunks, runs, log files, and the same XID again.
"""

import re
from collections.abc import Iterator

import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.epoch.work import Receipt, Task
from catchment.feed import loop
from catchment.model.errors import LEFT_BEHIND, Unsupported
from catchment.model.position import Prepared
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.source import first_position
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life
from tests.world.log_lines import troubles
from tests.world.prepared import prepare, roll_back_prepared
from tests.world.purged import purge

# In the tables of a Life, keys 0 to 19 are loaded.
CHANGES = (
    "DELETE FROM {t}.t00 WHERE id = 3",
    "UPDATE {t}.t00 SET v = v + 1, s = 'xa' WHERE id IN (4, 5)",
    "UPDATE {t}.t00 SET id = 1006 WHERE id = 6",
    "INSERT INTO {t}.t00 VALUES (1007, 7, 'born')",
    "SAVEPOINT undone",
    "UPDATE {t}.t01 SET v = 99 WHERE a = 2 AND b = 2",
    "ROLLBACK TO undone",
    "UPDATE {t}.t01 SET v = 98 WHERE a = 2 AND b = 9",
)
XID = "X'00ff27',X'01',7"


def changes(life: Life) -> list[str]:
    """The statements for the life's tables."""
    return [statement.format(t=life.schema) for statement in CHANGES]


def write(life: Life, step: int) -> None:
    """Ordinary transactions beside those prepared, whose rows are locked."""
    for server in life.servers.values():
        server.sql(
            f"UPDATE {life.schema}.t00 SET v = {step} WHERE id IN (1, 15)",
            f"INSERT INTO {life.schema}.t01 VALUES (8, {2000 + step}, {step}, 'beside')",
            f"UPDATE {life.schema}.t02 SET v = {step}",
        )


@pytest.fixture
def servers(pair: dict[str, PrivateServer], live: MakeLife) -> Iterator[dict[str, PrivateServer]]:
    """The shards; what a test leaves prepared is rolled back, or its tables could not be dropped."""
    yield pair
    for server in pair.values():
        roll_back_prepared(server)


def open_at_newest(life: Life, shard: str) -> tuple[Prepared, ...]:
    """What the newest epoch says is open."""
    row = EpochsTable(life.lake, "life").newest()
    assert row is not None
    return tuple(p for p in row.manifest.cut.positions[shard].prepared if p.committed is None)


def must_be_equal(life: Life) -> None:
    """After a run the lake is what the source has, for the judge and for verify."""
    assert life.run() == 0
    life.must_be_exact()
    assert execute(["verify", str(life.file)]) == 0


def test_rows_prepared_before_the_first_cut_are_waited_for_then_refused(
    servers: dict[str, PrivateServer],
    live: MakeLife,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    life = live(servers)
    life.load(20)
    monkeypatch.setattr(first_position, "XA_WAIT_SECONDS", 0.5)
    prepare(servers["80-"], "'early'", f"DELETE FROM {life.schema}.t00 WHERE id = 3")
    capfd.readouterr()
    code = life.run()
    said = troubles(capfd.readouterr().err)
    assert code == Unsupported.exit_code
    assert len(said) == 1
    assert "shard 80-" in said[0]
    assert "early" in said[0]
    (commit,) = re.findall(r"XA COMMIT \S+", said[0])
    servers["80-"].sql(commit)
    assert life.run() == 0
    life.must_be_exact()


@pytest.mark.promise("the rows of a prepared transaction come with the epoch that has its XA COMMIT")
def test_rows_count_when_they_are_committed_in_a_later_run(
    servers: dict[str, PrivateServer], live: MakeLife
) -> None:
    """One shard commits, the other one rolls the same back. Then the XID comes again, for other rows, and at last its
    file is purged."""
    life = live(servers)
    life.load(20)
    assert life.run() == 0
    for server in servers.values():
        prepare(server, XID, *changes(life))
    write(life, 1)
    for server in servers.values():
        server.sql("FLUSH BINARY LOGS")
    write(life, 2)
    must_be_equal(life)
    assert [p.xid.gtrid for p in open_at_newest(life, "80-")] == [b"\x00\xff'"]
    write(life, 3)
    servers["-80"].sql(f"XA ROLLBACK {XID}")
    servers["80-"].sql(f"XA COMMIT {XID}")
    write(life, 4)
    for server in servers.values():  # prepared and ended in one epoch, then prepared and left open
        prepare(server, XID, f"DELETE FROM {life.schema}.t00 WHERE id IN (10, 11)")
        server.sql(f"XA COMMIT {XID}")
        prepare(server, XID, f"DELETE FROM {life.schema}.t00 WHERE id = 12")
    must_be_equal(life)
    for server in servers.values():
        server.sql(f"XA ROLLBACK {XID}")
    write(life, 5)
    must_be_equal(life)
    assert not open_at_newest(life, "80-")
    server = servers["80-"]
    prepare(server, "'kept'", f"DELETE FROM {life.schema}.t00 WHERE id = 13")
    file, _ = server.log_end()
    server.sql("FLUSH BINARY LOGS")
    write(life, 6)
    assert life.run() == 0
    purge(server)
    server.sql("XA COMMIT 'kept'")
    write(life, 7)
    assert life.run() == LEFT_BEHIND
    said = rf"shard 80-: log file {file} .*X'6b657074'.*must be kept"
    assert all(re.search(said, reason) for reason in life.waiting().values())
    assert life.waiting().keys() == life.keys.keys()


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("in_commit_order", id="counted at PREPARE"),
        pytest.param("PreparedRows.__iter__", id="not read at all"),
    ],
)
def test_the_judge_sees_rows_that_count_at_the_wrong_place(
    servers: dict[str, PrivateServer], live: MakeLife, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def run_broken(task: Task) -> Receipt:
        from unittest.mock import patch

        from catchment.readers.run_task import run_task

        instead = (lambda images, moves: images) if broken == "in_commit_order" else (lambda rows: iter(()))
        with patch(f"catchment.readers.changes.{broken}", instead):
            return run_task(task)

    life = live(servers)
    life.load(20)
    assert life.run() == 0
    monkeypatch.setattr(loop, "run_task", run_broken)
    prepare(servers["80-"], "'seen'", *changes(life))
    assert life.run() == 0
    if broken == "PreparedRows.__iter__":
        life.must_be_exact()
        servers["80-"].sql("XA COMMIT 'seen'")
        assert life.run() == 0
    with pytest.raises(AssertionError, match=r"t00.*80-"):
        life.must_be_exact()
