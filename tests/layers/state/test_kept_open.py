"""Connections to a store in a file: kept from one transaction to the next, as long as it is the same file."""

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from catchment.model.errors import StateError
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.world import records


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each file that is opened."""
    found: list[str] = []
    connect: Any = sqlite3.connect

    def counted(path: str, **how: Any) -> Any:
        found.append(path)
        return connect(path, **how)

    monkeypatch.setattr(sqlite3, "connect", counted)
    return found


def store_at(file: Path) -> Store:
    return Store.open(f"sqlite:///{file}", "shop")


def test_transactions_open_no_file_of_their_own(tmp_path: Path, opened: list[str]) -> None:
    with hold(store_at(tmp_path / "state.db")) as lease:
        store = store_at(tmp_path / "state.db")
        store.put_plan(records.plan(1), lease.fence)
        before = len(opened)
        for turn in range(1, 6):
            store.put_manifest(records.manifest(turn), lease.fence)
        assert len(opened) == before
        store.close()


def test_what_is_written_goes_to_the_file_that_stands_at_the_path(tmp_path: Path) -> None:
    """An operator puts another store in its place: the old file, which nobody sees any more, gets nothing."""
    file, kept, away = (tmp_path / name for name in ("state.db", "kept.db", "away.db"))
    store = store_at(file)
    with hold(store) as lease:
        store.put_manifest(records.manifest(1), lease.fence)
        shutil.copy(file, kept)
        store.put_manifest(records.manifest(2), lease.fence)
        os.rename(file, away)
        os.rename(kept, file)
        store.put_manifest(records.manifest(3), lease.fence)
        assert store.newest()[1] == store_at(file).newest()[1] == records.manifest(3)
        assert store_at(away).newest()[1] == records.manifest(2)


def test_a_store_that_was_deleted_is_an_error_at_once(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    store = store_at(file)
    with hold(store) as lease:
        store.put_manifest(records.manifest(1), lease.fence)
        kept = file.read_bytes()
        file.unlink()
        with pytest.raises(StateError, match=r"state store .*state\.db"):
            store.put_manifest(records.manifest(2), lease.fence)
        assert not file.exists()
        file.write_bytes(kept)
        store.put_manifest(records.manifest(2), lease.fence)
    assert store_at(file).newest()[1] == records.manifest(2)
