"""The dump of a shard that stands between the turns of a stream, as long as turns can go on along it."""

from collections.abc import Sequence
from typing import Final

from catchment import world
from catchment.model.errors import CatchmentError
from catchment.model.position import LogOffset, Position
from catchment.model.source import Endpoint
from catchment.source.standing import StandingDump, can_stand
from catchment.source.standing import come as dumps_come

# Log that goes on for longer than this is read by a dump of its own, which ends where it was to.
_NEAR_BYTES: Final = 1 << 20
# After a dump of which nobody could read a part another one is not tried for so long.
_PAUSE_SECONDS: Final = 5.0


class StandingLog:
    """Of one shard; one thread at a time may ask."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._dump: StandingDump | None = None
        self._tried = -_PAUSE_SECONDS

    def stands_at(self, position: Position) -> bool:
        """Whether the log comes by itself from a position on."""
        return self._dump is not None and self._dump.at == self._start(self._dump, position)

    def is_known_at(self, position: Position) -> bool:
        """Whether it does, and somebody has read of it since it was found to be the log of that position."""
        return self._dump is not None and self._dump.begun and self.stands_at(position)

    @property
    def dump(self) -> StandingDump | None:
        """The dump that stands."""
        return self._dump

    def dump_at(self, position: Position, stop: LogOffset | None) -> StandingDump | None:
        """The dump that stands at a position, or one that begins there for a `stop` nearby; else None. Without a stop:
        the one that stands. Raises as `connect`."""
        begins = _begins(position)
        if not self.stands_at(position) or not _is_near(position.at, stop):
            self.close()
        now = world.steady_seconds()
        if (
            self._dump is None
            and stop is not None
            and _is_near(position.at, stop)
            and can_stand(begins)
            and now - self._tried >= _PAUSE_SECONDS
        ):
            self._tried = now
            self._dump = StandingDump(self._endpoint, position.server, begins)
        return self._dump

    def close(self) -> None:
        """End the dump."""
        dump, self._dump = self._dump, None
        if dump is None:
            return
        if dump.begun:
            self._tried = -_PAUSE_SECONDS
        dump.close()

    @staticmethod
    def _start(dump: StandingDump, position: Position) -> LogOffset:
        return position.at if dump.begun else _begins(position)


def _is_near(at: LogOffset, stop: LogOffset | None) -> bool:
    return stop is None or (at.file == stop.file and stop.offset - at.offset <= _NEAR_BYTES)


def _begins(position: Position) -> LogOffset:
    """Where a dump begins that reads the event in front of a position again, as LogDecoder does."""
    event = position.event
    return position.at if event is None else LogOffset(position.at.file, position.at.offset - event.size)


def come(logs: Sequence[StandingLog], seconds: float) -> bool:
    """Whether log of one of them comes by itself in so many seconds; True, too, where one does so no more."""
    dumps = [log.dump for log in logs if log.dump is not None]
    try:
        return len(dumps) < len(logs) or dumps_come(dumps, seconds)
    except CatchmentError:
        # It is given up when it is read.
        return True
