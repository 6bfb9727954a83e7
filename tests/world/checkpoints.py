"""Where a server's log ends with a checkpoint event, which says nothing of the groups in front of it (MariaDB)."""

from catchment.demo.server import PrivateServer
from tests.world.log_events import log_events
from tests.world.new_log_file import settled_end


def ended_by_checkpoint(server: PrivateServer) -> bool:
    """Whether the log ends with the checkpoint event of its newest file, once that event has been written. A snapshot
    there proves nothing about what precedes it (MariaDB)."""
    file = server.log_end()[0]
    settled_end(server, file)
    return str(log_events(server, file)[-1][2]) == "Binlog_checkpoint"
