"""Ctrl-C and SIGTERM at the worst moments: both at once, and where who hears them holds the event's lock."""

import signal
import subprocess
import sys

from catchment.cli.output import EXIT_INTERRUPTED
from tests.world.patience import PATIENCE_SECONDS

# The second signal comes as the handler of the first begins.
TOGETHER = """
import signal, sys

def second(frame, event, argument):
    if "signal" in frame.f_code.co_name and frame.f_code.co_filename.startswith(PACKAGE):
        sys.settrace(None)
        signal.raise_signal(signal.SIGTERM)

def together():
    sys.settrace(second)
    signal.raise_signal(signal.SIGINT)

import catchment
PACKAGE = catchment.__path__[0]
"""
A_COMMAND = f"""{TOGETHER}
import time
from catchment.cli import main

def execute(arguments):
    try:
        together()
    except KeyboardInterrupt:  # a thread may wait for a shard that is silent
        time.sleep({PATIENCE_SECONDS} / 2)
        print("the second one is lost")
    return 0

main.execute = execute
main.main()
"""
A_RUN = f"""{TOGETHER}
import time
from catchment.cli.signals import stopped_by_signals

with stopped_by_signals(restore=lambda: print("restored", flush=True)) as stop:
    together()
    time.sleep({PATIENCE_SECONDS} / 2)
    print("the second one is lost")
"""
WITH_THE_LOCK = """
import os, signal
from catchment.cli.signals import stopped_by_signals

with stopped_by_signals(restore=lambda: None) as stop:
    with stop._cond:
        os.kill(os.getpid(), signal.SIGTERM)
        print("heard", flush=True)
    stop.wait()
print("stopped", flush=True)
"""
TO_ANOTHER_THREAD = """
import os, signal, threading
from catchment.cli.signals import stopped_by_signals

go = threading.Event()

def kill():
    go.wait()
    os.kill(os.getpid(), signal.SIGTERM)

with stopped_by_signals(restore=lambda: None) as stop:
    threading.Thread(target=kill, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # of this thread alone
    go.set()
    stop.wait()
print("stopped", flush=True)
"""
# As the C library blocks the main thread's signals for the moment in which that makes another thread.
A_COMMAND_TO_ANOTHER_THREAD = """
import os, signal, threading
from catchment.cli import main

def kill(go):
    signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
    go.wait()
    for number in NUMBERS:
        os.kill(os.getpid(), number)

def execute(arguments):
    go, never = threading.Event(), threading.Lock()
    never.acquire()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})  # of this thread alone
    threading.Thread(target=kill, args=[go], daemon=True).start()
    go.set()
    try:
        never.acquire()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    if len(NUMBERS) > 1:
        never.acquire()
    return 0

main.execute = execute
main.main()
"""


def done(program: str) -> tuple[int, str, str]:
    """The exit code of a program, and what it said."""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_two_signals_that_come_together_end_a_command_at_once() -> None:
    assert done(A_COMMAND) == (EXIT_INTERRUPTED, "", "catchment: stopped again, ended at once\n")


def test_two_signals_that_come_together_end_a_run_at_once() -> None:
    code, said, errors = done(A_RUN)
    assert (code, said) == (EXIT_INTERRUPTED, "restored\n")
    assert errors.startswith("catchment: stopped again, ended at once; the same command goes on")


def test_a_signal_is_heard_where_its_thread_holds_the_lock_of_the_event() -> None:
    assert done(WITH_THE_LOCK) == (0, "heard\nstopped\n", "")


def test_a_signal_that_another_thread_takes_wakes_the_one_that_waits_for_the_event() -> None:
    assert done(TO_ANOTHER_THREAD) == (0, "stopped\n", "")


def test_a_signal_that_another_thread_takes_interrupts_a_command_that_waits_for_a_lock() -> None:
    said = done(f"import signal\nNUMBERS = [signal.SIGINT]\n{A_COMMAND_TO_ANOTHER_THREAD}")
    assert said == (0, "interrupted\n", "")


def test_a_second_signal_that_another_thread_takes_ends_such_a_command_at_once() -> None:
    code, _, errors = done(
        f"import signal\nNUMBERS = [signal.SIGINT, signal.SIGTERM]\n{A_COMMAND_TO_ANOTHER_THREAD}"
    )
    assert (code, errors) == (EXIT_INTERRUPTED, "catchment: stopped again, ended at once\n")


def test_both_are_what_they_were_behind_the_block() -> None:
    said = done(
        "import signal\nfrom catchment.cli.signals import stopped_by_signals\n"
        "before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)], signal.set_wakeup_fd(-1)\n"
        "with stopped_by_signals(): pass\n"
        "print(before == ([signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)], signal.set_wakeup_fd(-1)))"
    )
    assert said == (0, "True\n", "")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
