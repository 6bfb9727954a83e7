"""Who may read which feed: by a token, in the metadata of a call."""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import grpc

CLOSED: Final = "no feed of that name is open to this token: send `authorization: Bearer TOKEN`"
_HEADER: Final = "authorization"
_SCHEME: Final = "bearer"
Metadata = Iterable[tuple[str, str | bytes]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"


@dataclass(frozen=True, slots=True)
class Lock:
    """Opens to some tokens, of which it knows the digests alone."""

    digests: frozenset[bytes] = field(repr=False)

    @classmethod
    def of(cls, tokens: Iterable[str]) -> "Lock":
        """For these tokens."""
        return cls(frozenset(map(_digest, tokens)))

    def opens(self, authorization: str) -> bool:
        """Whether a header has one of the tokens; takes as long for each."""
        given = _digest(_token(authorization))
        found = [hmac.compare_digest(given, known) for known in self.digests]
        return any(found)


class Gate(grpc.ServerInterceptor):
    """Turns away whose token opens nothing. A thread would wait for the request of somebody who sends none."""

    def __init__(self, opens: Callable[[str], bool]) -> None:
        self._opens = opens

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Handler],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """The handler of a call. That of somebody who is turned away reads nothing."""
        if self._opens(authorization_of(handler_call_details.invocation_metadata)):
            return continuation(handler_call_details)
        return grpc.stream_stream_rpc_method_handler(_turned_away)


def authorization_of(metadata: Metadata) -> str:
    """The header of a call; empty without one."""
    given = next((value for name, value in metadata if name == _HEADER), "")
    return given if isinstance(given, str) else ""


def _turned_away(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, CLOSED)


def _token(authorization: str) -> str:
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == _SCHEME else ""


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
