"""The commands that turn seeds: one, or from one to another until one fails."""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol


class Simulated(Protocol):
    """What turns a seed."""

    def run(self) -> None: ...


def turn(
    module: str, made: Callable[[int, Path, str], Simulated], option: str, choices: Collection[str]
) -> None:
    """Turn the seeds that the command line names, and print a line for each. `option` chooses one of `choices`, by
    default the first."""
    if os.environ.get("PYTHONHASHSEED") != "0":  # else sets come in another order in each process
        again = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument(option, dest="choice", choices=choices, default=next(iter(choices)))
    asked = parser.parse_args()
    for seed in range(asked.first, (asked.last or asked.first) + 1):
        with tempfile.TemporaryDirectory() as directory:
            simulation = made(seed, Path(directory), asked.choice)
            simulation.run()
        print(simulation)
