"""How calls of every service end: a status, and the reason in one word beside it."""

from typing import Final, NoReturn

import grpc

from catchment.serve.hub.ends import End, Why

# The trailing metadata that names the reason.
REASON: Final = "catchment-reason"
_CODES: Final = {
    Why.DENIED: grpc.StatusCode.UNAUTHENTICATED,
    Why.REFUSED: grpc.StatusCode.INVALID_ARGUMENT,
    Why.UNUSABLE: grpc.StatusCode.FAILED_PRECONDITION,
    Why.PURGED: grpc.StatusCode.OUT_OF_RANGE,
    Why.DIVERGED: grpc.StatusCode.DATA_LOSS,
    Why.TOO_MANY: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Why.OVERTAKEN: grpc.StatusCode.ABORTED,
    # Not ABORTED: clients repeat a call that was aborted, and two clients of one name would evict each other for ever.
    Why.TAKEN_OVER: grpc.StatusCode.FAILED_PRECONDITION,
    Why.AWAY: grpc.StatusCode.UNAVAILABLE,
    Why.FAULT: grpc.StatusCode.INTERNAL,
}


def abort(context: grpc.ServicerContext, end: End) -> NoReturn:
    """End a call. The reason is beside the status, since a program cannot choose by the text."""
    context.set_trailing_metadata(((REASON, end.why.name.lower()),))
    context.abort(_CODES[end.why], end.text)
