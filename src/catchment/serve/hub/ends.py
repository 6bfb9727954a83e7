"""How a client's stream ends, whatever its protocol: what it is told of an error, and what stays in the log.

An error of a known kind says itself what is wrong. Any other may quote a server, an address or a user. Of that the
client gets a number, under which the log has it.
"""

import logging
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from catchment import world
from catchment.model.errors import (
    CatchmentError,
    ClientLeft,
    ConfigError,
    Denied,
    Diverged,
    LogRenamed,
    OtherServer,
    Purged,
    Retry,
    ServerStops,
    SourceError,
    TakenOver,
    TooLarge,
    TooManyClients,
    TooSlow,
    Unsupported,
)

_CHARACTERS_MAX: Final = 4000
_SHARD: Final = re.compile(r"shard ([^\s:,]+)")

_log = logging.getLogger(__name__)


class Why(Enum):
    """The kinds of ends, as a client tells them apart. Their names, in lower case, are the reason that a client is
    given beside the status."""

    DENIED = "it may not read this"
    REFUSED = "its request is wrong"
    UNUSABLE = "what it asks for cannot be streamed as it is"
    PURGED = "the log that it needs is gone"
    DIVERGED = "the log that it needs is another one"
    TOO_MANY = "there are too many clients"
    OVERTAKEN = "it was too slow"
    TAKEN_OVER = "another client has its name"
    AWAY = "a shard or this server is away"
    FAULT = "a fault of the server"


@dataclass(frozen=True, slots=True)
class End:
    """What a client is told."""

    why: Why
    text: str


STOPPED: Final = End(Why.AWAY, "this server stops; go on with the last vgtid, at another one or later")

_SAID: Final[tuple[tuple[type[CatchmentError], Why], ...]] = (
    (Denied, Why.DENIED),
    (ConfigError, Why.REFUSED),
    (TooManyClients, Why.TOO_MANY),
    (ServerStops, Why.AWAY),
    (ClientLeft, Why.AWAY),
    (TooSlow, Why.OVERTAKEN),
    (TakenOver, Why.TAKEN_OVER),
    (TooLarge, Why.UNUSABLE),
    (Unsupported, Why.UNUSABLE),
    (Purged, Why.PURGED),
    (Diverged, Why.DIVERGED),
    (LogRenamed, Why.AWAY),
)


def end_by(fault: Exception, feed: str) -> End:
    """What a client of a feed is told of an error; what it is not told is logged."""
    for kind, why in _SAID:
        if isinstance(fault, kind):
            return End(why, _cut(str(fault)))
    if isinstance(fault, RecursionError):
        return End(Why.REFUSED, "the request is nested too deeply; make it simpler")
    number = world.token()[:8]
    _log.error("%s: stream of %s", number, feed[:64], exc_info=fault)
    return _hidden(fault, f"number {number} in the server's log")


def _hidden(fault: Exception, noted: str) -> End:
    if not isinstance(fault, SourceError):
        return End(Why.FAULT, f"the server failed: {noted} says why")
    where = _shard_of(fault)
    if isinstance(fault, OtherServer):
        said = "has another server than that of the vgtid: begin with a copy, or ask who runs the server"
        return End(Why.DIVERGED, f"{where} {said} ({noted})")
    if fault.retry is Retry.SAME:
        return End(Why.AWAY, f"{where} cannot be read now; try again with the last vgtid ({noted})")
    return End(Why.UNUSABLE, f"{where} cannot be read: {noted} says why")


def _shard_of(fault: SourceError) -> str:
    """Where it happened; errors of a shard begin with its name."""
    said = _SHARD.match(str(fault))
    name = fault.shard or (said[1] if said else "")
    return f"shard {name}" if name else "a shard"


def _cut(text: str) -> str:
    """A status goes in the headers at the end, which clients limit to 8 KiB."""
    return text if len(text) <= _CHARACTERS_MAX else text[: _CHARACTERS_MAX - 1] + "…"
