"""A fold process that fails is told of and started less and less often."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catchment.flow.sink.apply import DeltaSink
from catchment.flow.sink.due import FoldLimits
from catchment.model.epoch import Commit, Part
from catchment.run import folding
from catchment.run.fold_process import FoldOrder
from catchment.run.folding import Folding
from catchment.run.report import Report
from tests.sink.model import FEED, ORDERS, delta, manifest, write


def test_a_fold_process_that_is_killed_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(order: FoldOrder) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        started.append(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        return process

    monkeypatch.setattr(folding, "start", start)
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(folding, "START_SECONDS_MIN", 5.0)
    sink = DeltaSink(tmp_path, FEED)
    watch = Folding(FoldOrder(str(tmp_path), FEED, 1, FoldLimits(), 3600))
    for epoch in range(1, 201):
        rows = [("s/0", epoch, False, (epoch, "x"))]
        files = [write(tmp_path, ORDERS, Part.CHANGES, f"{epoch}-a", rows)] if epoch < 3 else []
        record = manifest(epoch, (ORDERS,), *[delta(ORDERS, file) for file in files])
        watch.observe(Report(record, Commit(epoch, "", 0, sink.apply_epoch(record, 1)), {}, {}, {}))
        now[0] += 1.0
    assert 4 <= len(started) <= 6, "after 5, 10, 20, 40, 80 seconds"
    assert "exit code -9 (killed: is memory short?)" in caplog.text
    assert "80 s at the earliest" in caplog.text
