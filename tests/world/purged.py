"""Removing old files of a server's log, for certain."""

from catchment.demo.server import PrivateServer
from tests.world.patience import until


def purge(server: PrivateServer, to: str | None = None) -> None:
    """Remove all log files before `to`, or before the one that is written.

    PURGE leaves a file, and says nothing of it, while a dump reads it, or until InnoDB has made a checkpoint behind it
    (MariaDB).
    """
    first = to or server.log_end()[0]
    until(
        f"{first} is the first file of the log",
        lambda: server.sql(f"PURGE BINARY LOGS TO '{first}'", "SHOW BINARY LOGS")[0][0] == first,
    )


def begin_anew(server: PrivateServer) -> None:
    """Begin a new log file and remove all others."""
    server.sql("FLUSH BINARY LOGS")
    purge(server)
