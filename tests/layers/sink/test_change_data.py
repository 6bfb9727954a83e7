"""Delta's change data feed of settles at random: each version says exactly what it changed, row by row."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from catchment.sink.delta.layout import Change
from catchment.sink.delta.plain.shape import Form
from tests.layers.sink.test_model import SHAPES
from tests.layers.sink.test_settle import Rows, Settling

KIND = "int"


def told(path: Path, version: int) -> list[dict[str, Any]]:
    """The change data of one version, by delta-rs."""
    found = DeltaTable(path).load_cdf(starting_version=version, ending_version=version)
    rows: list[dict[str, Any]] = pa.table(found.read_all()).to_pylist()
    return rows


def carried_out(before: Rows, changes: list[dict[str, Any]]) -> Rows:
    """Rows after changes; fails where they do not fit."""
    gone = (Change.DELETE, Change.BEFORE)
    rows = list(before)
    for leaves in (True, False):
        for change in changes:
            if (change["_change_type"] in gone) is leaves:
                row = tuple(
                    value for name, value in change.items() if not name.startswith(("_change", "_commit"))
                )
                if leaves:
                    rows.remove(row)
                else:
                    rows.append(row)
    return sorted(rows, key=repr)


def must_tell_all(world: Settling) -> list[str]:
    """Each version's changes lead to it from the one before; their types, of all."""
    types: list[str] = []
    before: Rows = []
    for version in sorted(world.exact):
        changes = told(world.plain, version)
        after = world.expected(version)
        assert carried_out(before, changes) == after, version
        images = [{k: v for k, v in c.items() if not k.startswith("_c")} for c in changes]
        assert len({(c["_shard"], *(c[key] for key in world.lake.shape.key)) for c in images}) == len(
            images
        ) - sum(c["_change_type"] == Change.AFTER for c in changes)
        types += [c["_change_type"] for c in changes]
        before = after
    return types


@pytest.mark.parametrize(
    ("kind", "vectors", "turns"),
    [
        pytest.param(kind, number % 2 == turn, 40 if turn else 14, marks=pytest.mark.wide if turn else ())
        for turn in (0, 1)
        for number, kind in enumerate(SHAPES)
    ],
)
def test_each_version_says_what_it_changed(tmp_path: Path, kind: str, vectors: bool, turns: int) -> None:
    rng = random.Random(f"{kind} {vectors}")
    world = Settling(tmp_path, kind, Form(vectors, changes=True))
    world.turn(rng, turns)
    assert world.joins
    assert {*must_tell_all(world)} == {change.value for change in Change}
    world.must_be_exact(2)


def test_a_copy_alone_takes_no_room_for_its_changes(tmp_path: Path) -> None:
    world = Settling(tmp_path, KIND, Form(changes=True))
    world.lake.apply([], sorted(world.lake.uncopied)[:50])
    world.states[world.lake.epoch] = dict(world.lake.state)
    world.settle()
    assert not (world.plain / "_change_data").exists()
    assert must_tell_all(world) == ["insert"] * 50


@pytest.mark.parametrize("vectors", [True, False])
def test_a_chunk_of_which_a_row_died_at_once_tells_the_others(tmp_path: Path, vectors: bool) -> None:
    """The delete touches no row of the table, so the chunk is all that the commit changes."""
    world = Settling(tmp_path, KIND, Form(vectors, changes=True))
    chunk = sorted(world.lake.uncopied)[:20]
    world.lake.apply([], chunk)
    shard, key = chunk[3]
    world.lake.apply([(shard, key, None)], [])
    world.states[world.lake.epoch] = dict(world.lake.state)
    world.settle()
    assert must_tell_all(world) == ["insert"] * 19


def test_forms_change_at_any_time(tmp_path: Path) -> None:
    rng = random.Random(1)
    world = Settling(tmp_path, KIND)
    for turn in range(8):
        world.form = Form(*(rng.random() < 0.5 for _ in range(3)))
        world.turn(rng, 3)
        table = DeltaTable(world.plain)
        assert table.metadata().configuration["delta.enableChangeDataFeed"] == str(world.form.changes).lower()
        protocol = table.protocol()
        features = protocol.reader_features or []
        assert ("deletionVectors" in features) is world.form.vectors, turn
        assert protocol.min_reader_version == (3 if features else 1)
        if not world.form.vectors:
            assert table.to_pyarrow_table().num_rows == len(world.expected(max(world.exact)))
    world.must_be_exact()
