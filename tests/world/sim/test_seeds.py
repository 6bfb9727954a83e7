"""Seeds of the simulator: in each of them every epoch is exact, and the feed catches up when trouble is over."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.world.sim.found_by import FOUND_BY
from tests.world.sim.lots import FIRST, lots
from tests.world.sim.mistakes import MISTAKES
from tests.world.sim.mistakes_of_settings import OF_PURGES, OF_RENAMES, OF_TRUNCATES
from tests.world.sim.simulation import SETTINGS, Setting, Simulation

SEEDS = 500
# So many seeds are turned in one test.
_LOT = 20
# A checkpoint event behind the last group; a copy that stood still at an ALTER in front of XA, on a source at rest, and
# another whose floor was purged there. A floor that stood still behind an XA COMMIT and a rotation. Two starts of a
# server a second apart, which the checker took for one. A position inside a group of a log that was reset.
FAULTS_ONCE = (18839, 60591, 30488, 84796, 97815, 99574)
# A SELECT takes no time in the simulator, so a proof that comes behind it is rarely another one.
ESCAPING = "the_floor_is_proven_after_the_select"
# Few seeds find these.
RARE = (
    "what_xa_recover_lists_is_taken_for_visible",
    "a_dump_that_ends_early_is_taken_for_the_end_of_the_log",
    "a_reset_behind_the_select_is_not_noticed",
)
USUAL, TRUNCATED, PURGING, RENAMING = SETTINGS.values()
ALL_MISTAKES = {
    **{name: (plant, USUAL) for name, plant in MISTAKES.items()},
    **{name: (plant, TRUNCATED) for name, plant in OF_TRUNCATES.items()},
    **{name: (plant, PURGING) for name, plant in OF_PURGES.items()},
    **{name: (plant, RENAMING) for name, plant in OF_RENAMES.items()},
}


def turned(seed: int, directory: Path, setting: Setting = USUAL) -> Simulation:
    """A simulation that was run; raises what went wrong, with the command that repeats it."""
    simulation = Simulation(seed, directory / str(seed), setting)
    try:
        simulation.run()
    except Exception as error:
        named = next(name for name, one in SETTINGS.items() if one is setting)
        raise AssertionError(
            f"python -m tests.world.sim --setting {named} {seed}: {simulation}: {error}"
        ) from error
    return simulation


@pytest.mark.parametrize("first", lots("usual", _LOT))
def test_every_epoch_is_exact_whatever_breaks(first: int, tmp_path: Path) -> None:
    found = [turned(seed, tmp_path) for seed in range(first, first + _LOT)]
    assert sum(simulation.epochs for simulation in found) > 3 * _LOT
    assert sum(simulation.kills for simulation in found) > 5


@pytest.mark.parametrize("first", lots("truncated", _LOT))
def test_every_epoch_is_exact_while_tables_are_truncated(first: int, tmp_path: Path) -> None:
    found = [turned(seed, tmp_path, TRUNCATED) for seed in range(first, first + _LOT)]
    assert first != FIRST or sum(simulation.renewed for simulation in found) > 3


@pytest.mark.parametrize("first", lots("purged", _LOT))
def test_every_epoch_is_exact_while_log_files_go(first: int, tmp_path: Path) -> None:
    found = [turned(seed, tmp_path, PURGING) for seed in range(first, first + _LOT)]
    assert sum(simulation.epochs for simulation in found) > 3 * _LOT


@pytest.mark.parametrize("first", lots("renamed", _LOT))
def test_every_epoch_is_exact_while_logs_change_their_names(first: int, tmp_path: Path) -> None:
    found = [turned(seed, tmp_path, RENAMING) for seed in range(first, first + _LOT)]
    assert sum(simulation.epochs for simulation in found) > 3 * _LOT


@pytest.mark.long
@pytest.mark.timeout(100_000)
def test_of_a_hundred_thousand_seeds_every_epoch_is_exact(tmp_path: Path) -> None:
    for seed in range(SEEDS + 1, 100_001):
        turned(seed, tmp_path)


@pytest.mark.parametrize("seed", FAULTS_ONCE)
def test_what_seeds_have_found_stays_mended(seed: int, tmp_path: Path) -> None:
    assert turned(seed, tmp_path).epochs


def test_a_truncate_between_the_first_cut_and_the_look_for_the_largest_key(tmp_path: Path) -> None:
    assert turned(339426, tmp_path, TRUNCATED).epochs


def test_a_log_that_was_purged_to_files_of_another_name_goes_on(tmp_path: Path) -> None:
    assert turned(580378, tmp_path, RENAMING).epochs


def test_a_seed_turns_the_same_way_again(tmp_path: Path) -> None:
    first, again = (turned(7, tmp_path / name) for name in ("first", "again"))
    assert (first.world.trace, first.world.steps) == (again.world.trace, again.world.steps)
    assert turned(8, tmp_path).world.trace != first.world.trace


def test_each_mistake_can_be_planted() -> None:
    """The rules that they take away are where they were: `make test` says so, and not a slice some days later."""
    for plant, _ in ALL_MISTAKES.values():
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)


def _searched(name: str) -> Any:
    """A mistake whose seed is known costs one seed. To search for another takes minutes, for the rare ones many."""
    long = name in RARE and name not in FOUND_BY
    return pytest.param(name, marks=pytest.mark.long if long else pytest.mark.wide)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [_searched(name) for name in ALL_MISTAKES if name != ESCAPING])
def test_each_planted_mistake_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seed that found it last; where a change of the product has shifted that, by one that is searched for."""
    plant, setting = ALL_MISTAKES[name]
    plant(monkeypatch)
    found = FOUND_BY.get(name, 1)
    for seed in (found, *range(1, SEEDS + 1)):
        if (error := _fault(seed, tmp_path, setting)) is not None:
            print(f"{name}: seed {seed}: {type(error).__name__}: {str(error)[:200]}")
            if seed != found:
                warnings.warn(f"{name} is found by seed {seed} now: say so in FOUND_BY", stacklevel=1)
            return
    pytest.fail(f"none of {SEEDS} seeds finds it: {name}")


@pytest.mark.long
@pytest.mark.xfail(reason="few sets of seeds find it", strict=False)
def test_the_mistake_that_few_sets_of_seeds_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MISTAKES[ESCAPING](monkeypatch)
    assert any(_fault(seed, tmp_path, USUAL) for seed in range(1, SEEDS + 1))


def _fault(seed: int, directory: Path, setting: Setting) -> Exception | None:
    """What a seed finds. A mistake that cannot be planted as its name says is no find."""
    try:
        Simulation(seed, directory / str(seed), setting).run()
    except (TypeError, AttributeError, NameError):
        raise
    except Exception as error:
        return error
    return None
