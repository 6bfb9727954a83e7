"""Vectors that Trino reads: all of a table lie below a name of letters, from the settle on that is asked for them."""

import random
from pathlib import Path

import pytest

from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.plain.vectors import HIDDEN, SHOWN, file_of
from tests.layers.sink.test_settle import Settling

FORMS = {HIDDEN: Form(), SHOWN: Form(shown=True)}


def directories(world: Settling) -> set[str]:
    """Those of the newest version's vectors."""
    snapshot = DeltaLog(world.plain).newest()
    assert snapshot is not None
    vectors = [file.dead for file in snapshot.files.values() if file.dead is not None]
    return {file_of(vector).partition("/")[0] for vector in vectors}


@pytest.mark.parametrize("first", [HIDDEN, SHOWN])
def test_every_vector_lies_where_it_is_asked(tmp_path: Path, first: str) -> None:
    rng = random.Random(first)
    world = Settling(tmp_path, "pair")
    seen: set[str] = set()
    for place in (first, *sorted(FORMS), first):
        world.form = FORMS[place]
        world.turn(rng, 5)
        world.settle()
        assert directories(world) <= {place}
        seen |= directories(world)
    assert seen == set(FORMS)
    world.must_be_exact()


def test_a_settle_that_changes_no_row_moves_them(tmp_path: Path) -> None:
    """The versions' rows are the same, and no file of rows is written again."""
    world = Settling(tmp_path, "pair")
    world.turn(random.Random(3), 10)
    before = {file.path for file in world.files()}
    assert directories(world) == {HIDDEN}
    world.form = FORMS[SHOWN]
    chunk = sorted(world.lake.uncopied)[:1]
    world.lake.apply([], chunk)
    world.states[world.lake.epoch] = dict(world.lake.state)
    world.settle()
    assert directories(world) == {SHOWN}
    assert before <= {file.path for file in world.files()}
    world.must_be_exact()
