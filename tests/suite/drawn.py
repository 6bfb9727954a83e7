"""What a run draws from its commit: the seed of all random tests, and the slice that CI takes.

The same commit draws the same, so a failure repeats; each landing draws something new. `CATCHMENT_SEED` overrides the
seed, and is what a failed run prints.
"""

import hashlib
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
VARIABLE = "CATCHMENT_SEED"


def commit() -> str:
    """The commit that is checked out; 40 zeros where there is no repository (a source archive)."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "0" * 40
    return done.stdout.strip() if done.returncode == 0 else "0" * 40


def run_seed() -> int:
    """The seed of this run: that of the environment, else the commit's. The first caller hands it to all processes that
    it starts."""
    if VARIABLE not in os.environ:
        os.environ[VARIABLE] = str(int(commit()[:8], 16))
    return int(os.environ[VARIABLE])


def drawn(purpose: str, below: int) -> int:
    """A number from 0 up to `below` for one purpose, the same throughout a run."""
    digest = hashlib.sha256(f"{run_seed()} {purpose}".encode()).digest()
    return int.from_bytes(digest[:8]) % below
