"""The plugin in a small suite of its own: tiers and slices are chosen, and what failed is repeated alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.drawn import ROOT
from tests.suite.slices import SLICES, slice_of

LAYER = """
def test_a():
    pass
"""
PROMISES = """
import pytest
from pathlib import Path

@pytest.mark.promise("one")
def test_owner():
    pass

@pytest.mark.promise("flaky")
def test_flaky():
    was = Path(__file__).with_name("was")
    first = not was.exists()
    was.touch()
    assert not first

@pytest.mark.promise("red")
def test_red():
    assert False

@pytest.mark.parametrize("number", range(40))
def test_of_slices(number):
    pass

@pytest.mark.long
def test_of_hours():
    assert False
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A directory with one test of a layer, and a file of promises."""
    for folder, text in (("tests/layers/a", LAYER), ("tests/promises/b", PROMISES)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"test_{folder[-1]}.py").write_text(text)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p tests.suite.plugin\nmarkers =\n    promise\n    long\n"
    )
    return tmp_path


def ran(suite: Path, *options: str) -> tuple[int, str]:
    """Exit code and output of a run with these options."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", *options],
        cwd=suite,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "CATCHMENT_SEED": "7"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_run_of_the_tier_that_every_landing_takes(suite: Path) -> None:
    code, output = ran(suite, "--tier", "test")
    assert code == 1
    assert "2 failed, 2 passed" in output
    assert "test_of_slices" not in output
    assert "CATCHMENT_SEED=7" in output
    at_once = output.partition("= FAILURES =")[0]
    assert "RED tests/promises/b/test_b.py::test_red (call)" in at_once
    assert "FLAKY tests/promises/b/test_b.py::test_flaky: it failed in the run and passed" in output
    assert "FAILED tests/promises/b/test_b.py::test_red: it fails when repeated alone, too" in output


def test_a_run_of_one_slice(suite: Path) -> None:
    names = [f"tests/promises/b/test_b.py::test_of_slices[{number}]" for number in range(40)]
    mine = [name for name in names if slice_of(name) == 2]
    code, output = ran(suite, "--tier", "wide", "--slice", "2")
    assert code == 0
    assert f"slice 2 of {SLICES}" in output
    assert f"{len(mine)} passed" in output
    assert all(name in output for name in mine)
