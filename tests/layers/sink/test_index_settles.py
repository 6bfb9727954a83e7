"""Settles by the index: every version is exact, whatever becomes of the side files between two of them."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace

from catchment.model.arrangement import Arrangement
from catchment.model.epoch import Part
from catchment.model.errors import SinkError
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain import index
from catchment.sink.delta.plain.index import Index
from catchment.sink.delta.plain.index_directory import SUFFIX, TableFiles
from catchment.sink.delta.plain.side_file import SideFile
from catchment.sink.delta.upkeep.erase import erase
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from catchment.sink.erasure import Erasure, Spelling
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.model import FEED
from tests.layers.sink.test_arranged import ARRANGEMENTS, TABLE, Arranged
from tests.layers.sink.test_erase import NAMED, WORD, words
from tests.layers.sink.test_index import AT_ONCE
from tests.layers.sink.test_model import SHAPES
from tests.layers.sink.test_modes import Kept
from tests.layers.sink.test_settle import Settling
from tests.world.settled import carry_out


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every file has a side file at once; how many rows each look found by one."""
    found: list[int] = []
    rows = SideFile.rows

    def noted(self: SideFile, wanted: object) -> object:
        hit = rows(self, wanted)  # type: ignore[arg-type]
        found.append(len(hit))
        return hit

    monkeypatch.setattr(SideFile, "rows", noted)
    monkeypatch.setattr(index, "BY_COST", AT_ONCE)
    return found


def side_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob(f"*{SUFFIX}"))


def drop(directory: Path, rng: random.Random) -> None:
    rng.choice(side_files(directory)).unlink()


def drop_all(directory: Path, _: random.Random) -> None:
    shutil.rmtree(directory)


def cut(directory: Path, rng: random.Random) -> None:
    path = rng.choice(side_files(directory))
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def turn(directory: Path, rng: random.Random) -> None:
    path = rng.choice(side_files(directory))
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def swap(directory: Path, rng: random.Random) -> None:
    files = side_files(directory)
    rng.choice(files).write_bytes(rng.choice(files).read_bytes())


def leave(directory: Path, rng: random.Random) -> None:
    pass


HARMS: tuple[Callable[[Path, random.Random], None], ...] = (
    drop,
    drop_all,
    cut,
    turn,
    swap,
    leave,
    leave,
    leave,
)


def harm(directory: Path, rng: random.Random) -> None:
    if side_files(directory):
        rng.choice(HARMS)(directory, rng)


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        *((kind, 5) for kind in ("int", "composite", "binary", "datetime")),
        *(pytest.param(kind, 20, marks=pytest.mark.wide) for kind in SHAPES),
    ],
)
def test_every_version_is_exact_for_every_reader(
    tmp_path: Path, asked: list[int], kind: str, turns: int
) -> None:
    rng, directory = random.Random(kind), tmp_path / "index"
    world = Settling(tmp_path, kind)
    for _ in range(turns):
        world.index = Index(world.plain, directory)
        for _ in range(2):
            world.apply(rng)
            world.settle()
            harm(directory, rng)
        world.prepare_join(rng)
        world.commit_join()
    assert sum(asked) > turns // 2
    world.must_be_exact(turns)


@pytest.mark.parametrize("mode", [Mode.SOFT_DELETE, Mode.HISTORY])
def test_every_mode(tmp_path: Path, asked: list[int], mode: Mode) -> None:
    must_be_exact(Kept(tmp_path / "lake", mode, random.Random(3)), tmp_path / "index", asked)


@pytest.mark.parametrize(
    "name", ["all", *(pytest.param(n, marks=pytest.mark.wide) for n in ("order", "shards"))]
)
@pytest.mark.parametrize(
    "mode",
    [Mode.MIRROR, *(pytest.param(mode, marks=pytest.mark.wide) for mode in (Mode.SOFT_DELETE, Mode.HISTORY))],
)
def test_files_that_are_not_in_order_of_key(tmp_path: Path, asked: list[int], mode: Mode, name: str) -> None:
    shape = replace(TABLE, arrangement=ARRANGEMENTS[name])
    assert ARRANGEMENTS[name] != Arrangement()
    must_be_exact(Arranged(tmp_path / "lake", mode, random.Random(4), shape=shape), tmp_path / "index", asked)


def must_be_exact(table: Kept, directory: Path, asked: list[int]) -> None:
    table.index = str(directory)
    for _ in range(6):
        table.commit()
        table.commit()
        table.settle()
        names = {file.path + SUFFIX for file in DeltaLog(table.plain).newest().files.values()}  # type: ignore[union-attr]
        assert {path.name for path in side_files(directory)} <= names
        harm(directory, table.rng)
    assert sum(asked) > 5
    table.must_be_exact()


def order(root: Path, directory: Path) -> UpkeepOrder:
    return UpkeepOrder(str(root), FEED, 1, 3600.0, index=str(directory))


def test_an_erasure_takes_the_side_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold keys in clear. Settles beside it bring none back."""
    root, directory = tmp_path / "lake", tmp_path / "index"
    feeder = lived_by_name(root, directory)
    held = [path for path in side_files(directory) if WORD.encode() in path.read_bytes()]
    assert held
    carried = carry_out

    def beside(self: Index) -> None:
        real(self)
        carried(order(root, directory))

    real = Index.erase
    monkeypatch.setattr(Index, "erase", beside)
    erased_by_name(root, directory)
    assert words(root) == []
    assert words(directory) == []
    feeder.put(NAMED, ("other", "c"))
    carried(order(root, directory))
    assert words(directory) == []


def test_an_erasure_says_where_side_files_stay(tmp_path: Path) -> None:
    root, directory = tmp_path / "lake", tmp_path / "index"
    lived_by_name(root, directory)
    (held,) = {path.parent for path in side_files(directory)}
    there = held / "0.keys"
    there.mkdir()  # root may delete any file
    with pytest.raises(SinkError, match=r"side files in .*, which hold keys, cannot be deleted"):
        erased_by_name(root, directory)
    there.rmdir()
    erased_by_name(root, directory)
    assert words(tmp_path) == []
    assert side_files(directory) == []


def lived_by_name(root: Path, directory: Path) -> Feeder:
    """A table whose key is a text; the row with the word was copied, changed and deleted."""
    feeder = Feeder(root)
    feeder.put(NAMED, ("other", "a"), ("third", "b"), (WORD, "b"), part=Part.BASE)
    carry_out(order(root, directory))
    feeder.put(NAMED, ("other", "c"))
    carry_out(order(root, directory))
    feeder.put(NAMED, (WORD, None), deleted=True)
    carry_out(replace(order(root, directory), cleans=False))
    return feeder


def erased_by_name(root: Path, directory: Path) -> None:
    given = pa.table({"name": pa.array([WORD])})
    erase(order(root, directory), Erasure(NAMED.table, given, spelling=Spelling.EXACT))


def test_the_cleaner_takes_those_of_lakes_that_are_gone(tmp_path: Path) -> None:
    root, other, directory = tmp_path / "lake", tmp_path / "other", tmp_path / "index"
    for each in (root, other):
        lived_by_name(each, directory)
    before = side_files(directory)
    theirs = TableFiles(directory, table_dir(other, NAMED.table)).place("").parent
    gone = [path for path in before if path.parent == theirs]
    assert gone
    for path in gone:
        os.utime(path, (0, 0))
    carry_out(order(root, directory))
    assert side_files(directory) == [path for path in before if path not in gone]
