"""Where a server's log ends with a checkpoint event, which says nothing of the groups in front of it (MariaDB)."""

import time

from catchment.demo.server import PrivateServer
from tests.world.patience import PATIENCE_SECONDS


def ended_by_checkpoint(server: PrivateServer) -> bool:
    """Whether the log ends with the checkpoint event of its newest file, once that has come. It does up to a second
    later than the file, and a snapshot there proves nothing of what stands in front of it (MariaDB)."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        file = str(server.sql("SHOW MASTER STATUS")[0][0])
        events = server.sql(f"SHOW BINLOG EVENTS IN '{file}'")
        if any(event[2] == "Binlog_checkpoint" and event[5] == file for event in events):
            return bool(events[-1][2] == "Binlog_checkpoint")
        assert time.monotonic() < deadline, events
        time.sleep(0.02)
