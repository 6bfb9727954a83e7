"""Turn seeds: `python -m tests.world.sim 17` one, `python -m tests.world.sim 1 100000` many, until one fails."""

from pathlib import Path

from tests.world.sim.command import turn
from tests.world.sim.simulation import SETTINGS, Simulation


def _made(seed: int, directory: Path, setting: str) -> Simulation:
    return Simulation(seed, directory, SETTINGS[setting])


if __name__ == "__main__":
    turn("tests.world.sim", _made, "--setting", SETTINGS)
