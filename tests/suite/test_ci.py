"""`.ci/run`: the first red part ends it, and its closing line counts all parts, whatever broke."""

import subprocess
from pathlib import Path

import pytest

from tests.suite.drawn import ROOT

GREEN = {
    "lint": "All checks passed!",
    "setup": "",
    "check": "7 passed in 2.11s",
    "test": "==== 3012 passed, 4 skipped, 17 warnings in 402.11s (0:06:42) ====",
    "test-slice": "==== 201 passed, 1 skipped in 333.00s (0:05:33) ====",
}


def ran(directory: Path, says: dict[str, str], red: str = "") -> tuple[int, list[str]]:
    """Exit code and lines of `.ci/run` with a `make` that says this of each target, and fails at one."""
    make = directory / "make"
    cases = "\n".join(f"{target}) echo '{text}' ;;" for target, text in says.items())
    make.write_text(f'#!/bin/sh\ncase $1 in\n{cases}\nesac\n[ "$1" != "{red}" ]\n')
    make.chmod(0o755)
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "run"],
        env={"PATH": f"{directory}:/usr/bin:/bin", "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_green_parts_are_added_up(tmp_path: Path) -> None:
    code, lines = ran(tmp_path, GREEN)
    assert (code, lines[-1]) == (0, "ci: 3220 passed, 0 failed, 5 skipped")


@pytest.mark.parametrize(
    ("part", "says", "closing", "parts"),
    [
        ("lint", "Would reformat: src/a.py", "ci: 0 passed, 1 failed, 0 skipped", 1),
        ("setup", "error: no such package", "ci: 0 passed, 1 failed, 0 skipped", 2),
        ("check", "src/a.py:1: error: Name x is not defined", "ci: 0 passed, 1 failed, 0 skipped", 3),
        ("check", "2 failed, 5 passed in 2.00s", "ci: 5 passed, 2 failed, 0 skipped", 3),
        ("test", "== 2 failed, 9 passed, 3 errors in 9.00s ==", "ci: 16 passed, 5 failed, 0 skipped", 4),
        ("test", "INTERNALERROR> the worker died", "ci: 7 passed, 1 failed, 0 skipped", 4),
        ("test-slice", "== 1 failed, 9 passed in 9.00s ==", "ci: 3028 passed, 1 failed, 4 skipped", 5),
    ],
)
def test_the_first_red_part_ends_it(tmp_path: Path, part: str, says: str, closing: str, parts: int) -> None:
    code, lines = ran(tmp_path, {**GREEN, part: says}, red=part)
    assert code != 0
    assert lines[-1] == closing
    assert sum("exit code" in line for line in lines) == parts


def test_a_part_that_counts_failures_is_red_whatever_its_exit_code(tmp_path: Path) -> None:
    code, lines = ran(tmp_path, {**GREEN, "test": "== 1 failed, 9 passed in 9.00s =="})
    assert code != 0
    assert lines[-1] == "ci: 16 passed, 1 failed, 0 skipped"
