"""Turn seeds of the server of streams: `python -m tests.world.sim.serve 17` one, or from 1 to 1000, until one fails."""

from pathlib import Path

from tests.world.sim.command import turn
from tests.world.sim.serve.simulation import ServeSimulation
from tests.world.sim.serve.theme import ALL_THEMES


def _made(seed: int, directory: Path, theme: str) -> ServeSimulation:
    return ServeSimulation(seed, directory, theme)


if __name__ == "__main__":
    turn("tests.world.sim.serve", _made, "--theme", ("", *ALL_THEMES))
