"""The state store keeps most manifests and commits as what has changed: each of them comes back, or is refused."""

import random
import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import delete, event, select, update

from catchment.model.epoch_number import epoch_number
from catchment.model.errors import StateError
from catchment.model.records import link_of
from catchment.state.database import record_table
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.world import records


def url_of(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/state.db"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(url_of(tmp_path), "shop")
    yield opened
    opened.close()


def stored(store: Store) -> dict[int, str]:
    """The turns whose manifests are in the store, and how each is written."""
    with store.database.transaction() as connection:
        found = connection.execute(
            select(record_table.c.epoch, record_table.c.record).filter_by(kind="manifest")
        ).all()
    return {epoch >> 32: "whole" if link_of(record) is None else "changes" for epoch, record in sorted(found)}


def put(store: Store, turn: int, fence: int, keep: int = 100) -> None:
    """An epoch with its records, of which most say what has changed."""
    digest = store.put_manifest(records.large(turn), fence)
    assert store.digest(epoch_number(turn)) == digest
    store.put_commit(msgspec.structs.replace(records.commit(turn), digest=digest), fence, keep=keep)


def test_a_run_begins_with_a_whole_record_and_goes_on_with_changes(store: Store, tmp_path: Path) -> None:
    with hold(store) as lease:
        for turn in (1, 2, 3):
            put(store, turn, lease.fence)
    again = Store.open(url_of(tmp_path), "shop")
    with hold(again) as lease:
        put(again, 4, lease.fence)
        put(again, 5, lease.fence)
    assert stored(store) == {1: "whole", 2: "changes", 3: "changes", 4: "whole", 5: "changes"}
    for turn in range(1, 6):
        assert again.manifest(epoch_number(turn)) == records.large(turn)
        commit = again.commit(epoch_number(turn))
        assert commit is not None
        assert commit.versions == {"shop.orders": turn}
        assert commit.digest in again.digests(epoch_number(turn))


def test_an_epoch_does_not_read_the_record_that_it_builds_on(store: Store) -> None:
    """With 400 tables it has 3 MB, which a store on a server would send at every epoch."""
    read: list[Any] = []

    def runs(connection: Any, cursor: Any, sql: str, parameters: Any, context: Any, many: bool) -> None:
        if re.match(r"SELECT catchment_record\.record\b", sql):
            read.extend(parameters)

    with hold(store) as lease:
        put(store, 1, lease.fence)
        event.listen(store.database._engine, "before_cursor_execute", runs)
        put(store, 2, lease.fence)
        put(store, 3, lease.fence)
    assert stored(store) == {1: "whole", 2: "changes", 3: "changes"}
    assert {epoch_number(2), epoch_number(3)} <= set(read)
    assert epoch_number(1) not in read


def test_changes_are_written_once(store: Store) -> None:
    with hold(store) as lease:
        put(store, 1, lease.fence)
        digest = store.put_manifest(records.large(2), lease.fence)
        assert store.put_manifest(records.large(2), lease.fence) == digest
        with pytest.raises(StateError, match="another manifest"):
            store.put_manifest(msgspec.structs.replace(records.large(2), changes=8), lease.fence)


def test_what_kept_changes_build_on_is_kept(store: Store) -> None:
    with hold(store) as lease:
        for turn in range(1, 60):
            put(store, turn, lease.fence, keep=3)
            kept = stored(store)
            assert min(kept) == (1 if turn < 54 else 52)
            for one in kept:
                assert store.manifest(epoch_number(one)) == records.large(one)
                assert store.commit(epoch_number(one)) is not None
    assert stored(store)[52] == "whole"


def test_changes_whose_whole_record_is_gone_or_another_one(store: Store) -> None:
    with hold(store) as lease:
        for turn in (1, 2):
            put(store, turn, lease.fence)
    whole = select(record_table.c.record).filter_by(kind="manifest", epoch=epoch_number(1))
    first = record_table.c.epoch == epoch_number(1)
    with store.database.transaction() as connection:
        other = connection.execute(whole).scalar_one().replace(b'"changes":9', b'"changes":8')
        connection.execute(
            update(record_table).where(first, record_table.c.kind == "manifest").values(record=other)
        )
    with pytest.raises(StateError, match="whose record is another one; move the store away, it is rebuilt"):
        store.newest()
    with store.database.transaction() as connection:
        connection.execute(delete(record_table).where(first))
    with pytest.raises(
        StateError, match=r"1970-01-01T00:00:01Z.0000, whose record is not there; move the store"
    ):
        store.newest()


def test_a_store_that_was_replaced_under_a_run_gets_whole_records(store: Store) -> None:
    with hold(store) as lease:
        put(store, 1, lease.fence)
        with store.database.transaction() as connection:
            connection.execute(delete(record_table))
        with pytest.raises(StateError, match=r"manifest of epoch .* is gone"):
            Store(store.database, "shop").digest(epoch_number(1))
        with pytest.raises(StateError, match="is committed without its manifest"):
            store.put_commit(records.commit(1), lease.fence)
        put(store, 2, lease.fence)
        put(store, 3, lease.fence)
    assert stored(store) == {2: "whole", 3: "changes"}
    assert store.newest()[1] == records.large(3)


def test_after_an_epoch_that_was_taken_up_comes_a_whole_record(store: Store) -> None:
    with hold(store) as lease:
        put(store, 1, lease.fence)
        taken = msgspec.structs.replace(records.large(2), deltas=())
        store.take_up(taken, records.commit(2), lease.fence)
        put(store, 3, lease.fence)
    assert stored(store) == {1: "whole", 2: "whole", 3: "whole"}


@pytest.mark.parametrize("seed", range(6))
def test_any_course_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Runs begin and end anywhere, copies of the store are put back, little is kept: what is there comes back."""
    monkeypatch.setattr("catchment.model.records.CHANGES_MAX", 4)
    chance = random.Random(seed)
    file, copy, last = tmp_path / "state.db", tmp_path / "copy.db", 0
    for _ in range(8):
        if copy.exists() and chance.random() < 0.3:
            shutil.copy(copy, file)
        with closing(Store.open(url_of(tmp_path), "shop")) as store, hold(store) as lease:
            for _ in range(chance.randrange(1, 9)):
                last += chance.randrange(1, 3)
                put(store, last, lease.fence, keep=3)
                if chance.random() < 0.1:
                    digest = store.put_manifest(records.large(last + 1), lease.fence)  # and no commit of it
                    assert digest == store.put_manifest(records.large(last + 1), lease.fence)
                    last += 1
            if chance.random() < 0.2:
                last += 1
                store.take_up(records.large(last), records.commit(last), lease.fence)
            for turn in stored(store):
                assert store.manifest(epoch_number(turn)) == records.large(turn)
            assert store.newest()[1] == records.large(last)
            assert len(stored(store)) <= 3 + 2 * 5
        if chance.random() < 0.5:
            shutil.copy(file, copy)
