"""How often work that failed is done again, and how long to wait before."""

from catchment.model.errors import CatchmentError, Retry

TIMES_MAX = 30
SECONDS_MAX = 1.0
_SECONDS_FIRST = 0.1


def may_repeat(error: CatchmentError, failures: int) -> bool:
    """Whether the same work is worth another try after so many failures in a row, `error` being the last."""
    return error.retry is not Retry.NEVER and failures <= TIMES_MAX


def pause_seconds(failures: int) -> float:
    """How long to wait after so many failures in a row: twice as long each time, up to a second."""
    return min(SECONDS_MAX, _SECONDS_FIRST * 2.0 ** (failures - 1))
