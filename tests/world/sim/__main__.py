"""Turn seeds: `python -m tests.world.sim 17` one, `python -m tests.world.sim 1 100000` many, until one fails."""

import os
import sys
import tempfile
from pathlib import Path

from tests.world.sim.simulation import Simulation


def main(first: int, last: int) -> None:
    """Turn the seeds in order, and tell of each."""
    for seed in range(first, last + 1):
        with tempfile.TemporaryDirectory() as directory:
            simulation = Simulation(seed, Path(directory))
            simulation.run()
        print(simulation)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # else sets come in another order in each process
        again = [sys.executable, "-m", "tests.world.sim", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    main(int(sys.argv[1]), int(sys.argv[-1]))
