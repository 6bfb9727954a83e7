"""How a client that reads by itself comes to stand where a shared reader stands: from there on it can hear that one."""

from dataclasses import dataclass
from typing import Any, Final

from catchment.model.position import reaches
from catchment.serve.hub.ring import Place, Ring
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.vgtid import StreamCut

# For so long a client waits for a shared reader to come to where it stands itself.
_WAIT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Meeting:
    """What the client read for it, and where both stand; `at` None where they do not."""

    turn: Turn | None
    at: Place | None


def meet(epochs: Epochs, ring: Ring[Any], wait: float) -> Meeting:
    """Read up to where the ring ends. A reader that has caught up lacks little. Raises CatchmentError."""
    place = ring.end
    if not _later(place, epochs.stands):
        place = ring.beyond(place, _WAIT_SECONDS)
    if not (place.stands.cut.idle and _later(place, epochs.stands)):
        return Meeting(epochs.turn(wait), None)
    turn = None if _same(epochs.stands, place.stands) else epochs.turn_to(place.stands)
    # On the way a statement may have had a table copied again.
    if epochs.stands.cut.idle and _same(epochs.stands, place.stands):
        return Meeting(turn, place)
    # Or a shard could not be read. The next turn waits for a tick, so that nobody asks it without a pause.
    return Meeting(turn or epochs.turn(wait), None)


def _later(place: Place, stands: StreamCut) -> bool:
    """Whether no shard stands behind, and the numbers of epochs will go on from ours."""
    there, here = place.stands.cut, stands.cut
    if there.shards.keys() != here.shards.keys():
        return False
    if not all(reaches(there.positions[shard].at, here.positions[shard].at) for shard in here.shards):
        return False
    return place.tick >= here.epoch if _same(stands, place.stands) else there.epoch > here.epoch


def _same(one: StreamCut, other: StreamCut) -> bool:
    """Whether the same has been told up to both: all rows of the same tables, and the log to the same places."""
    return one.cut.shards.keys() == other.cut.shards.keys() and all(
        state.position.at == other.cut.shards[shard].position.at
        and [copy.table for copy in state.copies] == [copy.table for copy in other.cut.shards[shard].copies]
        for shard, state in one.cut.shards.items()
    )
