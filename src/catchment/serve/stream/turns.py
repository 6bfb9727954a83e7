"""The turns of a stream as they are told: which of them, and what comes while nothing happens."""

from catchment import world
from catchment.config import CopyConfig
from catchment.model.errors import LogRenamed
from catchment.serve.stream.added_shards import with_added, without_others
from catchment.serve.stream.begin import first_cut
from catchment.serve.stream.epochs import TURN_BYTES, Epochs
from catchment.serve.stream.events import Heartbeat
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.source import Source
from catchment.serve.stream.tables import Chosen, must_take_tables, usable
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.vgtid import COPY, CURRENT, Starts, StreamCut, read
from catchment.serve.stream.vgtid import Given as GivenVGtid

WAIT_SECONDS = 1.0
_PLACE_SECONDS = 10.0
# Servers are not restarted under other names again and again.
_BEGINNINGS_MAX = 3


class Pace:
    """Chooses among turns. Where a log goes on, a vgtid is told at least every ten seconds.

    So a client may begin again at a new place, however seldom its own tables change.
    """

    def __init__(self, heartbeat_interval: float = 0.0) -> None:
        self._interval = heartbeat_interval
        self._heard = self._placed = world.steady_seconds()

    @property
    def wait(self) -> float:
        """For how many seconds a turn may be waited for."""
        return min(self._interval or WAIT_SECONDS, WAIT_SECONDS)

    def heard(self) -> None:
        """Something was told."""
        self._heard = world.steady_seconds()

    def told(self, turn: Turn | None) -> Turn | Heartbeat | None:
        """What is told of a turn; `turn` None where nothing was written."""
        now = world.steady_seconds()
        if turn is not None and (turn.told or now - self._placed >= _PLACE_SECONDS):
            self._heard = self._placed = now
            return turn
        if self._interval and now - self._heard >= self._interval:
            self._heard = now
            return Heartbeat(world.now_us())
        return None


def started(
    source: Source,
    chosen: Chosen,
    vgtid: GivenVGtid,
    flags: Flags,
    copy: CopyConfig,
    turn_bytes: int = TURN_BYTES,
) -> Epochs:
    """The turns of these tables from `vgtid` on. Whoever has them stops them. `turn_bytes`: of one shard's log.

    Raises ConfigError, Unsupported for tables that cannot be streamed, and SourceError where a shard cannot serve.
    """
    begin = read(vgtid, source)
    for left in reversed(range(_BEGINNINGS_MAX)):
        try:
            return _begun(source, chosen, begin, flags, copy, turn_bytes)
        except LogRenamed:
            # A server that was restarted meanwhile has its log under another name: this moment is there.
            if not (left and isinstance(begin, Starts)):
                raise
    raise AssertionError("the last one returns or raises")


def _begun(
    source: Source,
    chosen: Chosen,
    begin: Starts | StreamCut,
    flags: Flags,
    copy: CopyConfig,
    turn_bytes: int,
) -> Epochs:
    """As `started` has it. Raises LogRenamed where a shard that begins at this moment cannot come to it."""
    current: list[str] = []
    copies: list[str] = []
    if isinstance(begin, Starts):
        copies = [shard for shard, start in begin.shards.items() if start.gtid == COPY and not start.tables]
        current = [shard for shard, start in begin.shards.items() if start.gtid == CURRENT or start.tables]
        beginning = {shard: source.endpoints[shard] for shard in begin.shards}
        must_take_tables(beginning, chosen)
        if source.skips:
            chosen = usable(beginning, chosen)
        stands = without_others(first_cut(begin, source.endpoints, chosen), source)
        added: list[str] = []
    else:
        stands, added = with_added(begin, source, chosen, flags.added_shards)
        copies = added
    epochs = Epochs(
        source.endpoints,
        chosen,
        stands,
        copy,
        aligned=flags.minimize_skew,
        copies=copies,
        added=added,
        turn_bytes=turn_bytes,
    )
    try:
        epochs.start()
        if isinstance(begin, Starts) or added:
            epochs.must_be_usable()
        epochs.reach_now(current)
    except BaseException:
        epochs.stop()
        raise
    return epochs
