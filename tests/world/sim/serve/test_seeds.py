"""Seeds of the server of streams: every client is exact at every vgtid, and no limit is passed, whatever breaks."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.world.sim.lots import lots
from tests.world.sim.serve.found_by import FOUND_BY
from tests.world.sim.serve.mistakes_of_hub import OF_HUB
from tests.world.sim.serve.mistakes_of_streams import OF_STREAMS
from tests.world.sim.serve.simulation import ServeSimulation

_LOT, _SMALL_LOT = 10, 5
# So many seeds are searched for one that finds a mistake, where a change of the product has shifted them.
SEEDS = 1500
MISTAKES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {**OF_HUB, **OF_STREAMS}
# Few seeds find these.
RARE = (
    "who_cannot_join_asks_again_without_a_pause",
    "a_client_joins_a_reader_though_it_has_rows_to_copy",
    "who_is_overtaken_goes_on_without_a_gap",
    "a_gap_begins_where_the_reader_stands",
    "what_a_subscriber_is_given_counts_as_acknowledged",
)


def turned(seed: int, directory: Path, theme: str = "") -> ServeSimulation:
    """A simulation that was run; raises what went wrong, with the command that repeats it."""
    simulation = ServeSimulation(seed, directory / str(seed), theme)
    try:
        simulation.run()
    except Exception as error:
        command = f"python -m tests.world.sim.serve {f'--theme {theme} ' if theme else ''}{seed}"
        raise AssertionError(f"{command}: {simulation}: {error}") from error
    return simulation


@pytest.mark.parametrize("first", lots("serve", _LOT))
def test_every_client_is_exact_at_every_vgtid(first: int, tmp_path: Path) -> None:
    found = [turned(seed, tmp_path) for seed in range(first, first + _LOT)]
    assert sum(simulation.judge.vgtids for simulation in found) > 10 * _LOT


@pytest.mark.parametrize("first", lots("serve renamed", _SMALL_LOT))
def test_every_client_goes_on_where_logs_change_their_names(first: int, tmp_path: Path) -> None:
    found = [turned(seed, tmp_path, "renamed") for seed in range(first, first + _SMALL_LOT)]
    assert sum(simulation.judge.vgtids for simulation in found) > 10 * _SMALL_LOT


def test_a_seed_turns_the_same_way_again(tmp_path: Path) -> None:
    first, again = (turned(3, tmp_path / name) for name in ("first", "again"))
    assert (first.world.trace, first.world.steps) == (again.world.trace, again.world.steps)


def test_each_mistake_can_be_planted() -> None:
    """The rules that they take away are where they were: `make test` says so, and not a slice some days later."""
    for plant in MISTAKES.values():
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)


def _searched(name: str) -> Any:
    """A mistake whose seed is known costs one seed. To search for one of the rare ones takes hours."""
    long = name in RARE and name not in FOUND_BY
    return pytest.param(name, marks=pytest.mark.long if long else pytest.mark.wide)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [_searched(name) for name in MISTAKES])
def test_each_planted_mistake_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seed that found it last; where a change of the product has shifted that, by one that is searched for."""
    MISTAKES[name](monkeypatch)
    known = FOUND_BY.get(name, 1)
    for seed in (known, *range(1, SEEDS + 1)):
        if (error := fault(seed, tmp_path)) is not None:
            print(f"{name}: seed {seed}: {type(error).__name__}: {str(error)[:200]}")
            if seed != known:
                warnings.warn(f"{name} is found by seed {seed} now: say so in FOUND_BY", stacklevel=1)
            return
    pytest.fail(f"none of {SEEDS} seeds finds it: {name}")


def fault(seed: int, directory: Path) -> Exception | None:
    """What a seed finds. A mistake that cannot be planted as its name says is no find."""
    try:
        ServeSimulation(seed, directory / str(seed)).run()
    except (TypeError, AttributeError, NameError):
        raise
    except Exception as error:
        return error
    return None
