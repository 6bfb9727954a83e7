"""A server's log goes on in a new file, and the server has said that nobody needs the ones before for a recovery."""

from catchment.demo.server import PrivateServer
from tests.world.log_events import log_events
from tests.world.patience import until
from tests.world.servers.launch import PrivateMySQL


def begin_new_file(server: PrivateServer) -> None:
    """Let the log go on in a new file. A feed that begins from now on has its first cut in that file, or in a later
    one. So a judge that has taken its rows before begins in front of it, whatever is written meanwhile."""
    server.sql("FLUSH BINARY LOGS")
    if not isinstance(server, PrivateMySQL):
        settled_end(server, server.log_end()[0])


def settled_end(server: PrivateServer, file: str) -> int:
    """The end of a log file of MariaDB once its own checkpoint event has come, for which redo is flushed."""
    server.sql("FLUSH LOCAL ENGINE LOGS")

    def end() -> int:
        events = log_events(server, file)
        named = any(event[2] == "Binlog_checkpoint" and event[5] == file for event in events)
        return int(events[-1][4]) if named else 0

    return until("a checkpoint event", end)
