"""Nothing in a run grows with the epochs that it has seen, in memory or in its state store."""

import tracemalloc
from pathlib import Path

import pytest

from tests.world.sim.endless import Endless, Remembered


def must_not_grow(directory: Path, first: int, epochs: int) -> None:
    """What a run remembers after so many epochs is what it remembered after the first ones."""
    seen: dict[int, Remembered] = {}
    feed = Endless(1, directory)

    def look(epoch: int) -> None:
        if epoch in (first, epochs):
            seen[epoch] = feed.remembered()

    feed.at = look
    tracemalloc.start()
    try:
        feed.run_for(epochs)
    finally:
        tracemalloc.stop()
    before, after = seen[first], seen[epochs]
    assert after.nbytes < 1.2 * before.nbytes + (64 << 10)
    # The newest thousand orders stay in any case.
    grown = {
        name: (before.rows[name], rows)
        for name, rows in after.rows.items()
        if rows > max(1.2 * before.rows[name] + 5, 1_100 if name == "catchment_order" else 0)
    }
    assert not grown
    assert after.stored < 1.3 * before.stored + (1 << 20)


@pytest.mark.wide
def test_a_run_does_not_grow(tmp_path: Path) -> None:
    must_not_grow(tmp_path, 250, 600)


@pytest.mark.long
def test_a_run_does_not_grow_in_the_long_run(tmp_path: Path) -> None:
    must_not_grow(tmp_path, 2_000, 200_000)
