"""The directory of side files: who may use it, what is left in it, and several at once."""

import os
import random
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from catchment.sink.delta.plain import index_directory
from catchment.sink.delta.plain.index_directory import SUFFIX, TableFiles, default_directory, delete_unused
from catchment.sink.delta.plain.touched import Changed
from tests.layers.sink.test_index import File, no_scan


def test_no_room_and_no_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = File(tmp_path, "string", "in order", random.Random(8))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    by_index = file.index()
    wanted = file.changed()
    expected = file.by_duckdb(wanted)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        for _ in range(3):
            assert list(by_index.rows(Changed(wanted), file.file)) == expected
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(file.side.parent.iterdir()) == []
    file.must_find(by_index, 1)
    with no_scan(monkeypatch):
        file.must_find(by_index)
    # Root may write anywhere but below a file.
    blocked = tmp_path / "file"
    blocked.write_text("")
    file.directory = blocked / "index"
    file.must_find(file.index())
    said = [record.getMessage() for record in caplog.records]
    assert len([line for line in said if str(blocked) in line]) == 1
    assert all("settles read the keys of whole files meanwhile" in line for line in said)
    file.directory = tmp_path / "full"
    with monkeypatch.context() as patch:
        patch.setattr(index_directory, "FREE_SHARE", 1.0)
        file.must_find(file.index())
    assert not file.side.exists()
    # What others may write is not believed.
    file.directory = tmp_path / "open"
    file.directory.mkdir()
    file.directory.chmod(0o777)
    file.must_find(file.index())
    assert list(file.directory.iterdir()) == [file.side.parent]
    assert list(file.side.parent.iterdir()) == []


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    file = File(tmp_path, "string", "in order", random.Random(9))
    file.must_find(file.index())
    for path, mode in ((file.directory, 0o700), (file.side.parent, 0o700), (file.side, 0o600)):
        assert path.stat().st_mode & 0o777 == mode


def test_threads_and_processes_at_once(tmp_path: Path) -> None:
    """Threads of two processes ask and make the same side files, and delete them now and then."""
    file = File(tmp_path, "pair", "of a collation", random.Random(11), rows=500)
    wanted = file.changed()
    expected = file.by_duckdb(wanted)
    order = {"plain": str(file.plain), "index": str(file.directory), "name": file.path.name}
    pq.write_table(wanted, tmp_path / "wanted.parquet")
    code = f"""
import threading
from pathlib import Path
import pyarrow.parquet as pq
from catchment.sink.delta.log.actions import Add
from catchment.sink.delta.log.delta_log import LakeFile
from catchment.sink.delta.plain.index import Index
from catchment.sink.delta.plain.index_rule import Rule
from catchment.sink.delta.plain.touched import Changed
order = {order!r}
by_index = Index(Path(order["plain"]), Path(order["index"]), Rule(0, 0, 0, 0))
file = LakeFile(Add(order["name"], {file.file.add.size}, 0, True), {file.file.rows})
wanted = pq.read_table({str(tmp_path / "wanted.parquet")!r})
wrong = []
def ask(number):
    for turn in range(16):
        if list(by_index.rows(Changed(wanted), file)) != {expected!r}:
            wrong.append(turn)
        if turn % 8 == number:
            by_index.keep_only([])
        if turn % 16 == number:
            by_index.erase()
threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not wrong, wrong
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert not [path for path in file.side.parent.iterdir() if path.suffix != SUFFIX]


def test_an_erasure_waits_for_who_makes_one(tmp_path: Path) -> None:
    """A side file of a data file that is gone is never left behind."""
    file = File(tmp_path, "string", "in order", random.Random(12))
    files, by_index = TableFiles(file.directory, file.plain), file.index()
    ended = threading.Event()

    def erase() -> None:
        by_index.erase()
        ended.set()

    with files.building():
        thread = threading.Thread(target=erase)
        thread.start()
        assert not ended.wait(0.2)
        files.write(file.path.name, [b"keys"])
    thread.join()
    assert list(file.side.parent.iterdir()) == []
    # Who comes behind sees that the data file is gone.
    file.path.unlink()
    with pytest.raises(Exception, match="cannot be read"):
        by_index.rows(Changed(file.changed()), file.file)
    assert list(file.side.parent.iterdir()) == []


def test_what_is_left_goes(tmp_path: Path) -> None:
    one, other = (File(tmp_path, kind, "in order", random.Random(kind)) for kind in ("int", "string"))
    for file in (one, other):
        file.must_find(file.index())
    draft = one.side.with_name(".of-one-that-died.tmp")
    draft.write_bytes(b"keys")
    one.index().keep_only([one.path.name])
    assert one.side.exists()
    assert not draft.exists()
    one.index().keep_only([])
    assert not one.side.exists()
    assert other.side.exists()
    delete_unused(one.directory)
    assert other.side.exists()
    old = other.side.stat().st_mtime - 8 * 86_400
    foreign = other.directory / "letters" / "mine.keys"
    foreign.parent.mkdir()
    foreign.write_text("not ours")
    for path in (other.side, other.side.parent, foreign, foreign.parent):
        os.utime(path, (old, old))
    delete_unused(one.directory)
    assert not other.side.parent.exists()
    assert foreign.exists()
    other.must_find(other.index())


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/x")
    for cache, expected in (("", "/home/x/.cache"), ("relative", "/home/x/.cache"), ("/var/c", "/var/c")):
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        assert default_directory() == Path(expected) / "catchment" / "index"
