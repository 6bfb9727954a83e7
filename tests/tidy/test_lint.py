"""Lint, layout and types are part of the suite: what `make lint` runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ("src", "tests", "bench", "examples", "setup.py")


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--output-format=concise", *CODE),
        ("ruff", "format", "--check", *CODE),
        ("mypy", "src", "tests", "bench", "examples"),
    ],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_clean(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
