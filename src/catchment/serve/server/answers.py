"""How a stream ends: errors as statuses of gRPC, with what a client may know of them.

An error of a known kind says itself what is wrong. Any other may quote a server, an address or a user. Of that the
client gets a number, under which the log has it.
"""

import re
from dataclasses import dataclass
from typing import Final

import grpc

from catchment import world
from catchment.model.errors import (
    CatchmentError,
    ConfigError,
    Denied,
    Diverged,
    OtherServer,
    Purged,
    Retry,
    SourceError,
    TakenOver,
    TooLarge,
    TooManyClients,
    TooSlow,
    Unsupported,
)

_SAID: Final[tuple[tuple[type[CatchmentError], grpc.StatusCode], ...]] = (
    (Denied, grpc.StatusCode.UNAUTHENTICATED),
    (ConfigError, grpc.StatusCode.INVALID_ARGUMENT),
    (TooManyClients, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (TooSlow, grpc.StatusCode.ABORTED),
    (TakenOver, grpc.StatusCode.ABORTED),
    (TooLarge, grpc.StatusCode.FAILED_PRECONDITION),
    (Unsupported, grpc.StatusCode.FAILED_PRECONDITION),
    (Purged, grpc.StatusCode.OUT_OF_RANGE),
    (Diverged, grpc.StatusCode.DATA_LOSS),
)
_CHARACTERS_MAX: Final = 4000
_SHARD: Final = re.compile(r"shard ([^\s:,]+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a stream. `number`: under which its error stands in the log, empty where the client knows it."""

    code: grpc.StatusCode
    text: str
    number: str = ""


def answer_to(fault: Exception) -> Answer:
    """What a client is told of an error."""
    for kind, code in _SAID:
        if isinstance(fault, kind):
            return Answer(code, _cut(str(fault)))
    if isinstance(fault, RecursionError):
        return Answer(grpc.StatusCode.INVALID_ARGUMENT, "the request is nested too deeply; make it simpler")
    number = world.token()[:8]
    if isinstance(fault, SourceError):
        where = _shard_of(fault)
        if isinstance(fault, OtherServer):
            said = (
                f"{where} has another server than that of the vgtid: begin with a copy, or ask who runs the server "
                f"(number {number} in its log)"
            )
            return Answer(grpc.StatusCode.DATA_LOSS, said, number)
        if fault.retry is Retry.SAME:
            said = f"{where} cannot be read now; try again with the last vgtid (number {number} in the server's log)"
            return Answer(grpc.StatusCode.UNAVAILABLE, said, number)
        said = f"{where} cannot be read; the server's log says why, under number {number}"
        return Answer(grpc.StatusCode.FAILED_PRECONDITION, said, number)
    said = f"the server failed; its log says why, under number {number}"
    return Answer(grpc.StatusCode.INTERNAL, said, number)


def _shard_of(fault: SourceError) -> str:
    """Where it happened; errors of a shard begin with its name."""
    said = _SHARD.match(str(fault))
    name = fault.shard or (said[1] if said else "")
    return f"shard {name}" if name else "a shard"


def _cut(text: str) -> str:
    """A status goes in the headers at the end, which clients limit to 8 KiB."""
    return text if len(text) <= _CHARACTERS_MAX else text[: _CHARACTERS_MAX - 1] + "…"
