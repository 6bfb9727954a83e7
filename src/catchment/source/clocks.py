"""How far the clock of a shard's server is from ours."""

from catchment import world
from catchment.model.source import Endpoint
from catchment.source.session import connect

_ASKED = 3


def clock_ahead(endpoint: Endpoint) -> float:
    """By how many seconds it is ahead; the answer that came soonest is taken as from the middle of its way.

    Raises SourceError, ConnectionLost.
    """
    found: list[tuple[float, float]] = []
    with connect(endpoint) as session:
        for _ in range(_ASKED):
            began = world.now_us()
            row = session.row("SELECT UNIX_TIMESTAMP(SYSDATE(6))")
            ended = world.now_us()
            theirs = float(str(row[0])) if row is not None else ended / 1e6
            found.append((ended - began, theirs - (began + ended) / 2e6))
    return min(found)[1]
