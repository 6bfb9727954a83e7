"""Status variables of query events of MariaDB 11, which mysql-replication does not know and refuses.

Their numbers and sizes are those of MariaDB's sql/log_event.h and sql/log_event_server.cc.
"""

from typing import Any

from pymysqlreplication.event import QueryEvent

_GTID_FLAGS3, _CHARACTER_SET_COLLATIONS = 130, 131
_known = QueryEvent._read_status_vars_value_for_key


def _read(event: Any, key: int) -> None:
    """The value behind a key: as the library reads it, or passed over."""
    if key == _GTID_FLAGS3:
        event.packet.read(2)
    elif key == _CHARACTER_SET_COLLATIONS:
        event.packet.read(4 * event.packet.read_uint8())  # pairs of a character set and its collation
    else:
        _known(event, key)


def know_newer_variables() -> None:
    """Have the library read them."""
    QueryEvent._read_status_vars_value_for_key = _read
