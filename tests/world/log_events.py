"""What a server says of the events of one of its log files."""

from contextlib import closing
from typing import Any

from catchment.demo.server import PrivateServer


def log_events(server: PrivateServer, file: str) -> list[tuple[Any, ...]]:
    """The rows of SHOW BINLOG EVENTS. Statements stand in them as they were written, in bytes of any character set, so
    the session asks for one that has a character for each byte."""
    with closing(server.connect(charset="latin1")) as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
        return list(cursor.fetchall())
