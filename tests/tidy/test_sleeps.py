"""Tests wait for events, and do not sleep (tests/tidy/sleeps.py)."""

from tests.tidy.sleeps import offenders
from tests.tidy.sources import ROOT, Source


def test_nothing_sleeps_without_a_reason() -> None:
    found = offenders()
    assert not found, "\n".join(found)


def test_the_rule_of_sleeps() -> None:
    planted = """
import time
from time import sleep as wait

def allowed():
    time.sleep(1)

def test():
    def inner():
        time.sleep(1)
    wait(1)
    engine.each(time.sleep, [1])
    subprocess.run([sys.executable, "-c", "time.sleep(9)"])
"""
    files = [Source(ROOT / "tests" / "x.py", planted), Source(ROOT / "tests" / "y.py", planted)]
    assert offenders(files, ["tests/x.py allowed", "tests/x.py gone", "tests/y.py"]) == [
        "tests/x.py:10: inner sleeps",
        "tests/x.py:11: test sleeps",
        "tests/x.py:12: test sleeps",
        "tests/x.py gone: does not sleep, and need not be allowed to",
    ]
