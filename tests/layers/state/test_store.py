"""The state store: records come back as they were, and only the holder of the lease may write them."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import select, update

from catchment.model.epoch import Commit, EpochRow
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import ConfigError, LeaseLost, StateError
from catchment.state.database import record_table
from catchment.state.lease import hold
from catchment.state.resume import Continue, decide
from catchment.state.store import Store
from tests.layers.model.manifests_before import CONTENT, kept
from tests.world import records


def url_of(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(url_of(tmp_path), "shop")
    yield opened
    opened.close()


def test_records_come_back_equal_from_another_store(store: Store, tmp_path: Path) -> None:
    assert store.newest() == (None, None, None)
    with hold(store) as lease:
        for turn in (1, 2):
            store.put_plan(records.plan(turn), lease.fence)
            store.put_manifest(records.manifest(turn), lease.fence)
            store.put_commit(records.commit(turn), lease.fence)
        store.put_plan(records.plan(3), lease.fence)
    again = Store.open(url_of(tmp_path), "shop", create=False)
    assert again.newest() == (records.plan(3), records.manifest(2), records.commit(2))
    assert again.manifest(epoch_number(1)) == records.manifest(1)
    assert again.commit(epoch_number(1)) == records.commit(1)
    assert again.manifest(5) is None
    assert Store.open(url_of(tmp_path), "other").newest() == (None, None, None)


def test_a_plan_may_be_amended_until_its_manifest(store: Store) -> None:
    with hold(store) as lease:
        store.put_plan(records.plan(1), lease.fence)
        amended = msgspec.structs.replace(records.plan(1), floors={"-80": records.offset(7)}, chunks=())
        store.put_plan(amended, lease.fence)
        assert store.newest()[0] == amended
        store.put_manifest(records.manifest(1), lease.fence)
        with pytest.raises(StateError, match="comes after the manifest"):
            store.put_plan(records.plan(1), lease.fence)


def test_a_source_at_rest_leaves_one_plan(store: Store) -> None:
    """It is planned in every turn and has no manifest; the newest number must not be used again."""
    with hold(store) as lease:
        for turn in (1, 2):
            store.put_plan(records.plan(turn), lease.fence)
        store.put_manifest(records.manifest(2), lease.fence)
        for turn in range(3, 9):
            store.put_plan(records.plan(turn), lease.fence)
    with store.database.transaction() as connection:
        kept = connection.scalars(select(record_table.c.epoch).filter_by(kind="plan")).all()
    assert sorted(kept) == [epoch_number(2), epoch_number(8)]
    assert store.newest() == (records.plan(8), records.manifest(2), None)


def test_a_manifest_is_written_once(store: Store) -> None:
    with hold(store) as lease:
        store.put_manifest(records.manifest(1), lease.fence)
        store.put_manifest(records.manifest(1), lease.fence)
        other = msgspec.structs.replace(records.manifest(1), changes=8)
        with pytest.raises(StateError, match="another manifest"):
            store.put_manifest(other, lease.fence)
    assert store.newest()[1] == records.manifest(1)


def test_a_commit_is_written_without_reading_the_manifest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 1,000 shards x 50 tables it has megabytes."""
    with hold(store) as lease:
        digest = store.put_manifest(records.manifest(1), lease.fence)
        commit = msgspec.structs.replace(records.commit(1), digest=digest)
        with monkeypatch.context() as patch:
            patch.delattr(Store, "_value")
            store.put_commit(commit, lease.fence)
    assert store.commit(commit.epoch) == commit


def test_a_manifest_in_another_order_is_the_same(store: Store) -> None:
    """Where its record has no version, commits name it by its content."""
    ((turned, _),) = kept("version 1, in another order")
    commit = msgspec.structs.replace(records.commit(1), digest=CONTENT)
    with hold(store) as lease:
        store.put_manifest(records.manifest(1), lease.fence)
        with store.database.transaction() as connection:
            connection.execute(
                update(record_table).where(record_table.c.kind == "manifest").values(record=turned)
            )
        store.put_commit(commit, lease.fence)


def test_a_commit_needs_its_manifest(store: Store) -> None:
    with hold(store) as lease:
        with pytest.raises(StateError, match="without its manifest"):
            store.put_commit(records.commit(1), lease.fence)
        store.put_manifest(records.manifest(1), lease.fence)
        with pytest.raises(StateError, match="without its manifest"):
            store.put_commit(Commit(epoch_number(1), "0" * 64, 0, {}), lease.fence)


def test_an_epoch_taken_up_from_the_lake(store: Store) -> None:
    row = EpochRow(msgspec.structs.replace(records.manifest(4), deltas=()), records.commit(4), 1)
    with hold(store) as lease:
        store.put_manifest(records.manifest(2), lease.fence)
        store.put_commit(records.commit(2), lease.fence)
        store.take_up(row.manifest, row.commit, lease.fence)
        _, manifest, commit = store.newest()
        assert (manifest, commit) == (row.manifest, row.commit)
        assert decide("shop", manifest, commit, row, ()) == Continue(row.manifest, apply=False, undo=row)
        other = msgspec.structs.replace(row, commit=msgspec.structs.replace(row.commit, digest="0" * 64))
        with pytest.raises(StateError, match="different epochs"):
            decide("shop", manifest, commit, other, ())
        store.put_manifest(records.manifest(5), lease.fence)
        _, manifest, commit = store.newest()
        assert decide("shop", manifest, commit, row, ()) == Continue(
            records.manifest(5), apply=True, undo=row
        )
    with pytest.raises(LeaseLost):
        store.take_up(row.manifest, row.commit, lease.fence - 1)


def test_old_records_are_forgotten_but_the_newest_never(store: Store) -> None:
    with hold(store) as lease:
        for turn in range(1, 9):
            store.put_plan(records.plan(turn), lease.fence)
            store.put_manifest(records.manifest(turn), lease.fence)
            store.put_commit(records.commit(turn), lease.fence, keep=3)
    assert [t for t in range(1, 9) if store.manifest(epoch_number(t))] == [6, 7, 8]
    assert [t for t in range(1, 9) if store.commit(epoch_number(t))] == [6, 7, 8]
    assert store.newest() == (records.plan(8), records.manifest(8), records.commit(8))


def test_an_outdated_fence_writes_nothing(store: Store) -> None:
    with hold(store) as lease:
        old = lease.fence
    with hold(store) as lease:
        assert lease.fence == old + 1
        with pytest.raises(LeaseLost, match=f"our fence was {old}"):
            store.put_plan(records.plan(1), old)
        with pytest.raises(LeaseLost, match=f"our fence was {old}"):
            store.put_manifest(records.manifest(1), old)
        with pytest.raises(LeaseLost, match=f"our fence was {old}"):
            store.put_commit(records.commit(1), old)
    assert store.newest() == (None, None, None)


def test_a_fence_of_nobody_writes_nothing(store: Store) -> None:
    with pytest.raises(LeaseLost):
        store.put_plan(records.plan(1), 1)


def test_readers_see_records_of_one_moment(store: Store, tmp_path: Path) -> None:
    """A reader beside a writer never sees a commit without its manifest."""
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        reader = Store.open(url_of(tmp_path), "shop", create=False)
        while not done.is_set():
            plan, manifest, commit = reader.newest()
            if (commit and (not manifest or manifest.epoch < commit.epoch)) or (
                manifest and (not plan or plan.epoch < manifest.epoch)
            ):
                wrong.append((plan, manifest, commit))

    thread = threading.Thread(target=read)
    thread.start()
    with hold(store) as lease:
        for turn in range(1, 60):
            store.put_plan(records.plan(turn), lease.fence)
            store.put_manifest(records.manifest(turn), lease.fence)
            store.put_commit(records.commit(turn), lease.fence)
    done.set()
    thread.join()
    assert not wrong


def test_no_store_without_create(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="has not run yet"):
        Store.open(url_of(tmp_path), "shop", create=False)
    assert not (tmp_path / "state.db").exists()


def test_missing_directories_are_made(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/a/b/state.db", "shop")
    assert (tmp_path / "a/b/state.db").stat().st_mode & 0o077 == 0


def test_path_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="cannot be made"):
        Store.open(f"sqlite:///{tmp_path}/file/state.db", "shop")


def test_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"not a database" * 1000)
    with pytest.raises(StateError, match="move it away, it is rebuilt"):
        Store.open(url_of(tmp_path), "shop")


def test_damaged_file(store: Store, tmp_path: Path) -> None:
    with hold(store) as lease:
        for turn in range(1, 20):
            store.put_manifest(records.manifest(turn), lease.fence)
    file = tmp_path / "state.db"
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xff" * (size - 4096))
    with pytest.raises(StateError, match="it is damaged"):
        store.newest()


def test_damaged_record(store: Store) -> None:
    with hold(store) as lease:
        store.put_manifest(records.manifest(1), lease.fence)
    with store.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE catchment_record SET record = '{\"epoch\": 1}'")
    with pytest.raises(StateError, match="a manifest of feed shop cannot be read"):
        store.newest()


def test_store_of_another_version(store: Store, tmp_path: Path) -> None:
    with store.database.transaction() as connection:
        connection.exec_driver_sql("UPDATE catchment_version SET version = 99")
    with pytest.raises(StateError, match="has layout 99"):
        Store.open(url_of(tmp_path), "shop")


def test_store_deleted_under_the_runner(store: Store, tmp_path: Path) -> None:
    with hold(store) as lease:
        store.put_plan(records.plan(1), lease.fence)
        (tmp_path / "state.db").unlink()
        with pytest.raises(StateError, match="unable to open database file"):
            store.put_manifest(records.manifest(1), lease.fence)
    assert not (tmp_path / "state.db").exists()


def test_unknown_driver_and_password_in_url() -> None:
    with pytest.raises(StateError, match="no driver for postgresql") as caught:
        Store.open("postgresql+psycopg2://keeper:hunter2@localhost/db", "shop")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(StateError) as caught:
        Store.open("mysql+pymysql://keeper:hunter2@127.0.0.1:1/db", "shop")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "mysql+pymysql://keeper:hunter2@127.0.0.1:1/db?foo=bar",
        "mysql+pymysql://keeper@127.0.0.1:1/db?password=hunter2&foo=bar",
        "mysql+pymysql://keeper:hunter2@127.0.0.1:1/db?connect_timeout=hunter2",
        "mysql+pymysql://keeper:hunter2@127.0.0.1:1/db?charset=hunter2",
        "mysql+pymysql://keeper:hunter2@127.0.0.1:1/db?ssl_ca=/absent/hunter2",
    ],
)
def test_options_that_the_driver_does_not_take(url: str) -> None:
    with pytest.raises(ConfigError, match="option") as caught:
        Store.open(url, "shop")
    assert "hunter2" not in str(caught.value)


def test_a_password_among_the_options_is_not_shown() -> None:
    with pytest.raises(StateError) as caught:
        Store.open("mysql+pymysql://keeper@127.0.0.1:1/db?password=hunter2", "shop")
    assert "hunter2" not in str(caught.value)


_FULL = """
import sys
from catchment.model.errors import StateError
from catchment.state.lease import hold
from catchment.state.resume import Continue, decide
from catchment.state.store import Store
from tests.layers.model.manifests_before import CONTENT, kept
from tests.world import records
store = Store.open(sys.argv[1], "shop")
with hold(store) as lease:
    try:
        for turn in range(1, 10_000):
            store.put_manifest(records.manifest(turn), lease.fence)
    except StateError as fault:
        print(turn, fault)
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs a mount of its own")
def test_disk_full_keeps_what_was_written(tmp_path: Path) -> None:
    """On a real small file system; it is mounted in a namespace of its own and gone afterwards."""
    script = f'mount -t tmpfs -o size=128k none "{tmp_path}/small" && exec "$@"'
    (tmp_path / "small").mkdir()
    check = _FULL + "\nprint(store.newest()[1].epoch >> 32)\n"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", check,
         f"sqlite:///{tmp_path}/small/state.db"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": "src:."},
    )  # fmt: skip
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("mounting is not allowed here")
    fault, newest = done.stdout.strip().splitlines()
    assert "free some space" in fault, done.stderr
    assert int(newest) == int(fault.split()[0]) - 1
