"""Who may read which feed: by a token in the metadata of a call."""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeAlias, TypeVar

import grpc

from catchment.model.errors import Denied

CLOSED: Final = "no feed of that name is open to this token: send `authorization: Bearer TOKEN`"
_SCHEME: Final = "bearer"
Metadata = Iterable[tuple[str, str | bytes]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Door(Generic[T]):
    """What lies behind one of several tokens, of which it knows the digests alone."""

    behind: T
    digests: frozenset[bytes] = field(repr=False)

    @classmethod
    def of(cls, behind: T, tokens: Iterable[str]) -> "Door[T]":
        """With these tokens."""
        return cls(behind, frozenset(map(_digest, tokens)))

    def opens(self, token: str) -> bool:
        """Whether it is one of the tokens; takes as long for each."""
        given = _digest(token)
        found = [hmac.compare_digest(given, known) for known in self.digests]
        return any(found)


def admitted(doors: Mapping[str, Door[T]], feed: str, metadata: Metadata) -> T:
    """What lies behind the door of a feed. Raises Denied, alike for a wrong token and for a feed that is none."""
    door = doors.get(feed)
    if door is None or not door.opens(_token(metadata)):
        raise Denied(CLOSED)
    return door.behind


class Gate(grpc.ServerInterceptor):
    """Turns away whose token opens no door. A thread would wait for the request of somebody who sends none."""

    def __init__(self, doors: Iterable[Door[Any]]) -> None:
        self._doors = tuple(doors)

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """The handler of a call. That of somebody who is turned away reads nothing."""
        token = _token(handler_call_details.invocation_metadata)
        if any([door.opens(token) for door in self._doors]):
            return continuation(handler_call_details)
        return grpc.stream_stream_rpc_method_handler(_turned_away)


def _turned_away(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, CLOSED)


def _token(metadata: Metadata) -> str:
    given = next((value for name, value in metadata if name == "authorization"), "")
    scheme, _, token = (given if isinstance(given, str) else "").partition(" ")
    return token.strip() if scheme.lower() == _SCHEME else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
