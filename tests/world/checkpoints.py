"""Where a server's log ends with a checkpoint event, which says nothing of the groups in front of it (MariaDB)."""

from catchment.demo.server import PrivateServer
from tests.world.patience import until


def ended_by_checkpoint(server: PrivateServer) -> bool:
    """Whether the log ends with the checkpoint event of its newest file, once that has come. A snapshot there proves
    nothing of what is in front of it (MariaDB). It comes when redo is flushed, which is asked for here."""
    server.sql("FLUSH LOCAL ENGINE LOGS")

    def last_kind() -> str:
        """The kind of the newest file's last event, once the file has its checkpoint event."""
        file = str(server.sql("SHOW MASTER STATUS")[0][0])
        events = server.sql(f"SHOW BINLOG EVENTS IN '{file}'")
        come = any(event[2] == "Binlog_checkpoint" and event[5] == file for event in events)
        return str(events[-1][2]) if come else ""

    return until("the newest file of the log has its checkpoint event", last_kind) == "Binlog_checkpoint"
