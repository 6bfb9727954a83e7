"""A kept handle of a lake table is at the newest version whenever it is asked for, and reads the log only for news."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from catchment.flow.sink import tables
from catchment.flow.sink.tables import LakeTable, create_table

ROWS = pa.table({"n": [1]})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    create_table(tmp_path / "t", ROWS.schema, [])
    return tmp_path / "t"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions from which the log was read on."""
    found: list[int] = []
    really = DeltaTable.update_incremental

    def counted(self: DeltaTable) -> None:
        found.append(self.version())
        really(self)

    monkeypatch.setattr(DeltaTable, "update_incremental", counted)
    return found


def version(table: LakeTable) -> int:
    handle = table.refreshed()
    assert handle is not None
    found: int = handle.version()
    return found


def test_it_sees_each_commit_of_others(directory: Path, reads: list[int]) -> None:
    table = LakeTable("t", directory)
    for number in range(1, 6):
        assert version(table) == number - 1
        write_deltalake(directory, ROWS, mode="append")
        assert [version(table) for _ in range(3)] == [number] * 3
    assert reads == [0, 1, 2, 3, 4]


def test_it_looks_at_the_log_again_when_it_did_long_ago(
    directory: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next entries may have come and gone meanwhile."""
    table = LakeTable("t", directory)
    version(table)
    for _ in range(3):
        write_deltalake(directory, ROWS, mode="append")
    DeltaTable(directory).create_checkpoint()
    for number in (0, 1, 2):
        (directory / "_delta_log" / f"{number:020d}.json").unlink()
    monkeypatch.setattr(tables, "_FRESH_SECONDS", 0.0)
    assert version(table) == 3


def test_it_looks_when_its_own_entry_is_gone(directory: Path, reads: list[int]) -> None:
    write_deltalake(directory, ROWS, mode="append")
    table = LakeTable("t", directory)
    assert version(table) == 1
    write_deltalake(directory, ROWS, mode="append")
    write_deltalake(directory, ROWS, mode="append")
    DeltaTable(directory).create_checkpoint()
    for number in (0, 1, 2):
        (directory / "_delta_log" / f"{number:020d}.json").unlink()
    assert version(table) == 3
