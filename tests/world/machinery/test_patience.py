"""A wait that runs out says for what it waited and where everybody is, in this process and in those below it."""

import subprocess
import sys
import threading

import pytest

from tests.world.patience import PATIENCE_SECONDS, RanOut, until

# The middle process only starts another one, which hangs in a function of a known name.
_HANGS = """
import sys
def lost_in_thought():
    print("hangs", flush=True)
    sys.stdin.read()
lost_in_thought()
"""
_STARTS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_HANGS!r}])"


def test_a_wait_ends_with_what_came() -> None:
    states = iter(["", "", "there"])
    assert until("it is there", lambda: next(states), every=0.0) == "there"
    assert next(states, None) is None


def test_a_wait_that_runs_out_shows_all_stacks(capfd: pytest.CaptureFixture[str]) -> None:
    released = threading.Event()

    def held_in_a_thread() -> None:
        released.wait(PATIENCE_SECONDS)

    thread = threading.Thread(target=held_in_a_thread)
    thread.start()
    child = subprocess.Popen(
        [sys.executable, "-c", _STARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "hangs\n"
        with pytest.raises(RanOut, match="after 0 s still not: the row comes, of rows 3") as raised:
            until("the row comes,", lambda: False, seen=lambda: "of rows 3", seconds=0.0)
        child.stdin.close()
    released.set()
    thread.join()
    assert isinstance(raised.value, AssertionError), "pytest shows it as a test that failed"
    said = capfd.readouterr().err
    for place in ("test_a_wait_that_runs_out_shows_all_stacks", "held_in_a_thread", "lost_in_thought"):
        assert place in said


def test_a_process_at_which_nobody_can_look_does_not_hide_the_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(RanOut):
            until("nothing", lambda: False, seconds=0.0)
        assert child.stdin is not None
        child.stdin.close()
    assert "no stacks: " in capfd.readouterr().err
