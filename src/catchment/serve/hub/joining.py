"""How a client that begins at this moment joins the reader that is there already: nobody reads anything for it.

So sixty-four that come at once do not wait for each other, as those do that must catch up first.
"""

from dataclasses import dataclass
from typing import Final, Generic

from catchment import world
from catchment.model.cut import Tick
from catchment.model.errors import CatchmentError
from catchment.model.position import reaches
from catchment.serve.hub.following import Following
from catchment.serve.hub.ring import Place
from catchment.serve.hub.shared import ReadersOf
from catchment.serve.hub.telling import M
from catchment.serve.stream.vgtid import CURRENT, Starts, StreamCut

# For so long a client waits for the shared reader to come to this moment.
_WAIT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Joined(Generic[M]):
    """A shared reader with one client more, which begins `at` this place."""

    following: Following[M]
    at: Place


def joined(readers: ReadersOf[M], begin: StreamCut | Starts) -> Joined[M] | None:
    """The shared reader, at a place of this moment; None where the client is to read by itself.

    So it is where the client begins elsewhere, and where no reader comes to this moment in time.
    """
    if isinstance(begin, StreamCut) or any(start.gtid != CURRENT for start in begin.shards.values()):
        return None
    following = readers.join()
    if following is None:
        return None
    at = None
    try:
        if begin.shards.keys() == following.begin.stands.cut.shards.keys():
            at = _now(following)
    except CatchmentError:
        pass  # What ails that reader need not ail one that begins now.
    finally:
        if at is None:
            readers.leave(following)
    return None if at is None else Joined(following, at)


def _now(following: Following[M]) -> Place | None:
    """A place of the reader before which everything lies that is visible now."""
    ends, ring = world.steady_seconds() + _WAIT_SECONDS, following.ring
    tick, place = following.now(_WAIT_SECONDS), ring.end
    while tick is not None and not ring.failed:
        if _stands(place, tick):
            return place
        left = ends - world.steady_seconds()
        if left <= 0:
            return None
        place = ring.beyond(place, left)
    return None


def _stands(place: Place, tick: Tick) -> bool:
    """Whether no shard stands behind its tick, and no row is to be copied."""
    cut = place.stands.cut
    return cut.idle and all(
        shard in tick.offsets and reaches(state.position.at, tick.offsets[shard])
        for shard, state in cut.shards.items()
    )
