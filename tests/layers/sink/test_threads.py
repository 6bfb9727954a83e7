"""Programs that read a lake from several threads at once."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# msgspec 0.22 dies by SIGSEGV in four of ten such processes where the decoder is not there yet.
PROCESSES = 12
FIRST_READS = """
import sys, threading
from catchment.sink.delta import epochs

row = {"manifest": sys.argv[1], "versions": "{}", "epoch": 1, "digest": "", "committed_us": 0, "fence": 1}
barrier = threading.Barrier(4)
sys.setswitchinterval(1e-6)

def read():
    barrier.wait()
    assert epochs._row(row).manifest.feed == "shop"

threads = [threading.Thread(target=read) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
MANIFEST = (
    '{"feed":"shop","epoch":1,"previous":0,"time_us":0,"window_us":0,"cut":{},"sealed":{},"progress":[],"shapes":[],'
    '"deltas":[]}'
)


def test_the_first_reads_of_epochs_may_come_at_once() -> None:
    def read(_: int) -> int:
        command = [sys.executable, "-c", FIRST_READS, MANIFEST]
        return subprocess.run(command, check=False).returncode

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(read, range(PROCESSES))) == {0}
