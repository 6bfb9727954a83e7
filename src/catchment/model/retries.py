"""How often work that failed is done again, and how long to wait before."""

from typing import Final

from catchment.model.errors import CatchmentError, LogLost, Retry, Scope, SinkAway, StateError

TIMES_MAX = 30
# Between two looks for what has been away for longer.
AWAY_SECONDS_MAX = 10.0
SECONDS_MAX = 1.0
_SECONDS_FIRST = 0.1


def may_repeat(error: CatchmentError, failures: int) -> bool:
    """Whether the same work is worth another try after so many failures in a row, `error` being the last."""
    return error.retry is not Retry.NEVER and failures <= TIMES_MAX


def concerns_all(error: CatchmentError) -> bool:
    """Whether an error that a table met is none of that table's: every table needs the lake and the state store, and
    the right to write."""
    return isinstance(error, SinkAway | StateError)


# What a shard meets is its own trouble up to this scope.
_OF_A_SHARD: Final = frozenset({Scope.CHUNK, Scope.TABLE, Scope.SHARD})


def holds_up_a_shard(error: CatchmentError) -> bool:
    """Whether an error that a shard met holds up that shard alone. A lost log is another matter: its shard begins
    again."""
    return error.scope in _OF_A_SHARD and not isinstance(error, LogLost)


def may_pass(error: BaseException, *, bears: bool) -> bool:
    """Whether a run may go on while a shard has this error. `bears`: also where somebody has to mend what it is."""
    if not isinstance(error, CatchmentError):
        return False
    return error.retry is not Retry.NEVER or (bears and holds_up_a_shard(error))


def is_waited_for(error: CatchmentError, seconds: float, wait_max: float | None) -> bool:
    """Whether what has been away for so many seconds is waited for; `wait_max`: None is for ever."""
    return bool(error.away) and (wait_max is None or seconds < wait_max)


def pause_seconds(failures: int) -> float:
    """How long to wait after so many failures in a row: twice as long each time, up to a second. After those that are
    repeated whatever failed, up to ten."""
    more = failures - TIMES_MAX
    if more > 0:
        return min(AWAY_SECONDS_MAX, SECONDS_MAX * 2.0 ** min(more, 10))
    return min(SECONDS_MAX, _SECONDS_FIRST * 2.0 ** (failures - 1))
