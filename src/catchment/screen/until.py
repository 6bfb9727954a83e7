"""When something is through, in words: as sure as it is known."""

from catchment.model.progress import THROUGH, Forecast

UNKNOWN = "unknown"
_SECONDS_LEFT_MAX = 100 * 3600


def until(forecast: Forecast) -> str:
    """`0:03:20 (0:02:40 to 0:05:00)`; what is unknown is said with its reason. Empty where it is through."""
    if forecast == THROUGH:
        return ""
    if forecast.likely is None:
        return f"{UNKNOWN}: {forecast.why}"
    if forecast.high is None:
        return f"{clock(forecast.likely)} ({clock(forecast.low or 0)} or more: {forecast.why})"
    return f"{clock(forecast.likely)} ({clock(forecast.low or 0)} to {clock(forecast.high)})"


def briefly(forecast: Forecast) -> str:
    """The likely time alone."""
    if forecast == THROUGH:
        return ""
    return UNKNOWN if forecast.likely is None else clock(forecast.likely)


def clock(seconds: float) -> str:
    """`0:03:20`: hours, minutes, seconds."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def time_left(rows: int, rate: float) -> str:
    """At the present rate; empty where that is too slow to say anything."""
    return clock(rows / rate) if rows < rate * _SECONDS_LEFT_MAX else ""
