"""Leaving a session so that the server has ended it too, for servers whose sessions are counted.

A server that still sends when its client closes the socket notices that late, and the next session comes on top.
"""

from socket import SHUT_WR, socket

from catchment import world

# For so long, and for so much of an answer that still comes, the server's end is waited for.
_SECONDS_MAX = 1.0
_BYTES_MAX = 8 << 20
_READ_BYTES = 1 << 20
# So long it takes a server that sends more to meet the closed socket, and to end.
NOTICED_SECONDS = 0.1


def has_ended(connection: socket) -> bool:
    """Send no more, and read until the server closes its side: whether it has. True where the connection is broken."""
    deadline, left = world.steady_seconds() + _SECONDS_MAX, _BYTES_MAX
    try:
        connection.shutdown(SHUT_WR)
        while left > 0 and (seconds := deadline - world.steady_seconds()) > 0:
            connection.settimeout(seconds)
            size = len(connection.recv(_READ_BYTES))
            if size == 0:
                return True
            left -= size
    except TimeoutError:
        return False
    except OSError:
        return True
    return False
