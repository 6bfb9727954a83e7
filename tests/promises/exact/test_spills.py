"""Rows of a transaction that is larger than memory may hold: they lie on the worker's disk, and never stay there."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.work import Failed, SegmentTask
from catchment.model.errors import CatchmentError, TemporaryDisk
from tests.promises.exact.steps import Steps, run_here
from tests.world.disks import small_disk
from tests.world.engines import Here
from tests.world.patience import until

Begin = Callable[..., Steps]
MIB = 1 << 20
# More than a spool holds in memory, in one transaction.
LARGE = f"INSERT INTO t SELECT 100 + seq, REPEAT(CHAR(65 + seq % 26), {MIB}) FROM seq_1_to_48"
TASK = """
import pickle, sys
from catchment.readers.run_task import run_task
run_task(pickle.load(open(sys.argv[1], "rb")))
"""


@pytest.fixture
def steps(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    """A feed that has copied a table and is to read a large transaction."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shard}, fresh_schema(shard))
    found.sql("a", "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)", "INSERT INTO t VALUES (1, 'a')")
    found.run()
    found.sql("a", LARGE)
    return found


def spills(process: "subprocess.Popen[bytes]", directory: Path) -> bool:
    """Whether a process holds rows in files of a directory, be they in it by name or not."""
    assert process.poll() is None, "the task has ended"
    opened = []
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            opened.append((os.readlink(link), link.stat().st_size))
        except FileNotFoundError:
            continue
    return any(name.startswith(f"{directory}/") and size > MIB for name, size in opened) or any(
        file.is_file() and file.stat().st_size > MIB for file in directory.rglob("*")
    )


@pytest.mark.promise(
    "a transaction larger than memory spills to the worker's disk, and the spill is always removed"
)
def test_a_task_that_is_killed_leaves_no_rows_on_its_disk(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, order = tmp_path / "scratch", tmp_path / "task"
    scratch.mkdir()
    here = run_here(monkeypatch)
    each = here.each
    killed: list[int] = []

    def kill_first(work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        segments = [task for task in tasks if isinstance(task, SegmentTask)]
        if segments and not killed:
            order.write_bytes(pickle.dumps(segments[0]))
            environment = {**os.environ, "TMPDIR": str(scratch)}
            process = subprocess.Popen([sys.executable, "-c", TASK, str(order)], env=environment)
            until("rows on the disk", lambda: spills(process, scratch), every=0.001)
            process.send_signal(signal.SIGKILL)
            killed.append(process.wait())
            assert list(scratch.rglob("*")) == []
        return each(work, tasks)

    monkeypatch.setattr(here, "each", kill_first)
    steps.must_be_equal("t", "id", "v")
    assert killed == [-signal.SIGKILL]


def test_a_disk_without_room_is_told_and_no_shard_is_blamed(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for read_only in (False, True):
        failures: list[CatchmentError] = []
        place = tmp_path / f"full {read_only}"
        with monkeypatch.context() as patch, small_disk(place, 8 * MIB) as disk:
            here = run_here(patch)
            patch.setattr(here, "each", _watched(here, failures))
            patch.setattr(tempfile, "tempdir", str(disk.path))
            if read_only:
                disk.make_read_only()
            with pytest.raises(TemporaryDisk) as raised:
                steps.run()
        told = str(raised.value)
        assert f"in {place}, the directory for temporary files" in told
        assert ("Read-only file system" if read_only else "No space left on device") in told
        assert "of its 8 MiB are free" in told
        assert "TMPDIR" in told
        assert "shard" not in told
        assert len(failures) == 1
        assert (raised.value.exit_code, raised.value.shard in ("", "a")) == (8, True)
    steps.must_be_equal("t", "id", "v")


def _watched(here: Here, failures: list[CatchmentError]) -> Callable[..., list[Any]]:
    each = here.each

    def watched(work: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        receipts = each(work, tasks)
        failures.extend(receipt.error for receipt in receipts if isinstance(receipt, Failed))
        return receipts

    return watched
