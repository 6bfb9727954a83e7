"""What a server says of the events of one of its log files."""

from contextlib import closing
from typing import Any

from catchment.demo.server import PrivateServer


def log_events(server: PrivateServer, file: str) -> list[tuple[Any, ...]]:
    """The rows of SHOW BINLOG EVENTS. Statements stand in them as they were written, in bytes of any character set:
    those that are no UTF-8 are replaced."""
    with closing(server.connect(use_unicode=False)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
        return [tuple(map(_readable, row)) for row in cursor.fetchall()]


def _readable(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
