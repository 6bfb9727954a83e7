"""Turn seeds: `python -m tests.world.sim 17` one, `python -m tests.world.sim 1 100000` many, until one fails."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.world.sim.simulation import SETTINGS, Simulation


def main() -> None:
    """Turn the seeds in order, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.world.sim", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--setting", choices=SETTINGS, default="usual")
    asked = parser.parse_args()
    for seed in range(asked.first, (asked.last or asked.first) + 1):
        with tempfile.TemporaryDirectory() as directory:
            simulation = Simulation(seed, Path(directory), SETTINGS[asked.setting])
            simulation.run()
        print(simulation)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # else sets come in another order in each process
        again = [sys.executable, "-m", "tests.world.sim", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    main()
