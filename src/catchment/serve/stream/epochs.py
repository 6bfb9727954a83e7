"""The stream's clock and its turns: from one cut to the next, pulled by whoever reads.

A turn reads the log of every shard up to a tick, then copies chunks as of there. A shard that cannot be read stays
where it stands, and the others go on, until it has been away for too long.
"""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from catchment import world
from catchment.config import CopyConfig
from catchment.feed.clock import Clock
from catchment.feed.planner import Limits
from catchment.model.cut import Tick
from catchment.model.epoch_number import epoch_number
from catchment.model.errors import CatchmentError, CutMissed, Retry
from catchment.model.position import LogOffset, Resets
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable
from catchment.serve.stream.advance import SHARD_ADDED, Void
from catchment.serve.stream.alignment import Alignment
from catchment.serve.stream.away import AWAY_SECONDS_MAX
from catchment.serve.stream.cuts import not_back, shown_by, stands_after
from catchment.serve.stream.shard_reader import Step
from catchment.serve.stream.stream_shards import StreamShards
from catchment.serve.stream.tables import Chosen, Definitions
from catchment.serve.stream.turn import ShardTold, ShardTurn, Turn
from catchment.serve.stream.vgtid import StreamCut

# Between two ticks: while logs stand still, and behind one by which all was told.
TICK_SECONDS, _BUSY_SECONDS = 0.1, 0.005
# A log that comes by itself is followed for so long until the server is asked again where it ends, and for RESETs.
_UNASKED_SECONDS = 1.0
# Log of one shard and turn: after a long pause it comes in parts that a consumer can hold.
TURN_BYTES = 32 << 20
_NOW_SECONDS_MAX = 60.0


class Epochs:
    """Turns, one after another; not thread-safe. `stands`: up to where all was given. `copies`: shards of which the
    stream begins to copy all tables; `added`: those of them that an earlier stream, which it goes on, did not have.
    `turn_bytes`: of the log of a shard in one turn."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        chosen: Chosen,
        stands: StreamCut,
        copying: CopyConfig,
        *,
        aligned: bool = False,
        copies: Collection[str] = (),
        added: Collection[str] = (),
        turn_bytes: int = TURN_BYTES,
    ) -> None:
        self.stands = stands
        self._endpoints = {shard: endpoints[shard] for shard in stands.cut.shards}
        limits = Limits(copying.chunk_time, copying.chunk_rows_max, 1, copying.log_budget)
        self._aligned = aligned
        self._copies = copies
        self._turn_bytes = turn_bytes
        self._alignment: Alignment | None = None
        self._again: dict[str, list[Void]] = {
            shard: [Void(copy.table, SHARD_ADDED) for copy in stands.cut.shards[shard].copies]
            for shard in added
        }
        self._clock: Clock | None = None
        self._shards = StreamShards(self._endpoints, chosen, limits, turn_bytes)
        self._tick = 0
        self._apart = TICK_SECONDS
        self._ask_at = 0.0
        self._told: dict[str, ShardTold] = {}

    def start(self) -> None:
        """Begin to ask the shards where their logs end. Raises Diverged or Purged where one does not go on."""
        cut, again = self._shards.begun(self.stands.cut, self._copies)
        for shard, voids in again.items():
            self._again[shard] = [*self._again.get(shard, ()), *voids]
        self.stands = replace(self.stands, cut=cut)
        positions = cut.positions
        if self._aligned:
            self._alignment = Alignment(self._shards.clocks_ahead(), self._turn_bytes)
        servers = {shard: position.server for shard, position in positions.items()}
        clock = Clock(self._endpoints, servers, TICK_SECONDS, cut.epoch, away_max=AWAY_SECONDS_MAX)
        self._clock = clock.start(positions)

    def must_be_usable(self) -> None:
        """Raise Unsupported where rows of some tables cannot be told."""
        self._shards.must_be_usable()

    def reach_now(self, shards: Collection[str]) -> None:
        """Have these shards stand at this moment, and tell nothing of the way: what is visible now lies before it.

        Raises CatchmentError; LogRenamed where the log of one goes on in files of another name: begin again.
        """
        assert self._clock is not None, "start first"
        left, ends = set(shards), world.steady_seconds() + _NOW_SECONDS_MAX
        tick = None
        while left:
            tick = tick or self._clock.after(self.tick, _NOW_SECONDS_MAX)
            if tick is None or world.steady_seconds() > ends:
                raise CutMissed(
                    f"shards {', '.join(sorted(left))}: no group of their logs ended where they said that they stand, "
                    f"for {_NOW_SECONDS_MAX:.0f} s; begin again"
                )
            self._tick = tick.number
            offsets = {shard: at for shard, at in tick.offsets.items() if shard in left}
            self._taken(replace(tick, offsets=offsets), None, untold=True)
            reached = {s for s, at in offsets.items() if self.stands.cut.shards[s].position.at == at}
            states = self.stands.cut.shards
            readers = self._shards.readers
            left -= {shard for shard in reached if readers[shard].sees_children(states[shard])}
            # Where a turn was too short for the log, the next one goes on to the same place.
            again = left <= offsets.keys() - reached and self.stands.cut.epoch == tick.number
            tick = tick if again else None
        positions = self.stands.cut.positions
        self._clock.must_be_whole({shard: positions[shard] for shard in shards})

    def begun(self) -> Turn:
        """Where the shards stand, with the copies that began when the stream was resumed."""
        again = [ShardTurn(shard, None, (), voids) for shard, voids in self._again.items()]
        empty = [
            ShardTable(shard, copy.table)
            for shard in self._copies
            for copy in self.stands.cut.shards[shard].copies
            if copy.done
        ]
        return Turn(self.stands, again, bool(self._copies) and self.stands.cut.copied, empty)

    @property
    def tick(self) -> int:
        """The number of the last tick; turns to come have greater ones."""
        return max(self.stands.cut.epoch, self._tick)

    @property
    def caught_up(self) -> bool:
        """Whether no row is to be copied, and each shard stands where a tick showed its end."""
        return self.stands.cut.idle and not self.stands.unshown

    @property
    def shards(self) -> Mapping[str, ShardTold]:
        """How far each shard is told."""
        return self._told

    @property
    def definitions(self) -> Definitions:
        """The tables as their rows are told now."""
        return self._shards.definitions

    def now(self, timeout: float) -> Tick | None:
        """Where the logs end, asked from this moment on; None where no shard said it in so many seconds, and where one
        goes on in files of another name. Any thread may ask. Raises CatchmentError."""
        assert self._clock is not None, "start first"
        tick = self._clock.after(0, timeout, since=world.steady_seconds())
        return None if tick is None or self._clock.ends_a_name(tick) else tick

    def turn_to(self, stands: StreamCut) -> Turn | None:
        """What the shards tell up to where another stream stands, later than this one; None where nothing moved, and
        where files of another name lie in between. Raises CatchmentError."""
        clock = self._clock
        places = {shard: state.position.at for shard, state in stands.cut.shards.items()}
        if clock is not None and any(clock.ends_before(shard, at) for shard, at in places.items()):
            return None
        turn = self._taken(stands.cut.tick, None, stands.unshown)
        self._tick = max(self._tick, stands.cut.epoch)
        return turn

    def stop(self) -> None:
        """End the clock and its sessions."""
        if self._clock is not None:
            self._clock.stop()
        self._shards.close()

    def turn(self, timeout: float) -> Turn | None:
        """The next turn; None where nothing was written for so many seconds. Raises CatchmentError."""
        ends = world.steady_seconds() + timeout
        while (left := ends - world.steady_seconds()) > 0:
            turn = self._turn(left)
            if turn is not None:
                return turn
        return None

    def _turn(self, timeout: float) -> Turn | None:
        """As `turn` has it; None, too, where another try may help."""
        if self._follows:
            if not self._shards.come(min(timeout, self._ask_at - world.steady_seconds())):
                return None
            if len(self.stands.cut.shards) == 1:
                return self._followed()
        return self._ticked(timeout)

    @property
    def _follows(self) -> bool:
        """Whether all logs come by themselves, so that nobody has to ask whether there is more. What is copied, what
        foreign keys do, and alignment rely on ticks."""
        return not (self._aligned or self._is_due) and self._shards.follow(self.stands.cut.shards)

    def _followed(self) -> Turn | None:
        """A turn to where the log of the one shard has come. It stands at one moment there; of several shards only a
        tick tells that."""
        assert self._clock is not None, "start first"
        shards, now = self.stands.cut.shards, world.now_us()
        resets = self._resets(self._shards.unknown(shards))
        steps = self._logs(dict.fromkeys(shards), resets, {}, untold=False)
        self._tick = max(self.tick + 1, epoch_number(now // 1_000_000))
        self._clock.pass_by(self._tick)
        return self._told_by(Tick(self._tick, now, 0, {}), steps, {}, ())

    def _ticked(self, timeout: float) -> Turn | None:
        """A turn to where a tick showed the ends of the logs."""
        assert self._clock is not None, "start first"
        tick = self._clock.after(self.tick, timeout, self._apart)
        if tick is None:
            return None
        self.stands = shown_by(tick, self.stands)
        tick = not_back(tick, self.stands)
        self._tick = tick.number
        self._apart = min(max(self._apart * 2, _BUSY_SECONDS), TICK_SECONDS)
        began_shown = not self.stands.unshown
        if self.stands.cut.idle and self.stands.cut.stood_at(tick):
            self._rested(tick)
            turn = None
        else:
            turn = self._taken(tick, self._alignment)
        # What is sealed follows from a turn between two ticks, so one after which the log was followed is not enough.
        if began_shown and self._is_due:
            self._ask_at = world.steady_seconds() + _UNASKED_SECONDS
        if turn is not None:
            self._apart = 0.0 if self.stands.unshown else _BUSY_SECONDS
        return turn

    @property
    def _is_due(self) -> bool:
        """Whether logs that come by themselves have been followed for long enough without a question."""
        return world.steady_seconds() >= self._ask_at

    def _rested(self, tick: Tick) -> None:
        """The shards' logs stood still: those that wait for one may go on."""
        self._shards.rest(self.stands.cut.shards)
        if self._alignment is not None:
            self._alignment.took(dict.fromkeys(tick.offsets), world.now_us() / 1e6)

    def _taken(
        self, tick: Tick, align: Alignment | None, hidden: Collection[str] = (), *, untold: bool = False
    ) -> Turn | None:
        """What the shards tell up to a tick; None where nothing moved, and where none could be read. `hidden`: shards
        whose offset no tick showed, since another stream stands there before the end of one. `untold`: nobody is told
        of it."""
        logs = self._ticked_logs(tick, align, untold=untold)
        copying = {shard: step for shard, step in logs.items() if not step.state.idle}
        # Nobody would receive its rows, so no chunk is read.
        copies = logs if untold else self._shards.copied(copying, tick)
        turn = self._told_by(tick, logs, copies, hidden)
        if turn is not None and self._clock is not None:
            self._clock.verified(self.stands.cut.positions)
        return turn

    def _told_by(
        self, tick: Tick, logs: Mapping[str, Step], copies: Mapping[str, Step], hidden: Collection[str]
    ) -> Turn | None:
        """What the shards told of their logs, and with the rows that were copied behind; as `_taken` has it."""
        before = self.stands
        steps = {**logs, **copies}
        whole = {shard for shard, step in steps.items() if shard in copies or step.state.idle}
        self._shards.took(steps, whole)
        self.stands = stands_after(before, tick, steps, hidden)
        if self.stands is before:
            return None
        now = world.steady_seconds()
        self._told |= {
            shard: ShardTold(step.told.event_time, now)
            for shard, step in steps.items()
            if step.told is not None and step.told.event_time
        }
        # A table may begin again and be copied whole in one turn.
        ends = any(rows.done for step in copies.values() for rows in step.copied)
        completes = self.stands.cut.copied and (ends or not before.cut.copied)
        turns = [ShardTurn(shard, step.told, step.copied) for shard, step in steps.items()]
        return Turn(
            self.stands, turns, completes, ahead=None if self._alignment is None else self._alignment.ahead
        )

    def _ticked_logs(self, tick: Tick, align: Alignment | None, *, untold: bool) -> dict[str, Step]:
        """The logs up to a tick of the shards that can be read."""
        now, resets = world.now_us() / 1e6, self._asked(tick)
        until = align.until(tick.offsets, now) if align else {}
        steps = self._logs(tick.offsets, resets, until, untold=untold)
        if align is None:
            return steps
        while over := align.over({shard: step.told for shard, step in steps.items()}, now):
            kept = {shard: step for shard, step in steps.items() if shard not in over}
            again = self._logs({shard: tick.offsets[shard] for shard in over}, resets, over, untold=untold)
            steps = kept | again
        align.took({shard: step.told for shard, step in steps.items()}, now)
        return steps

    def _logs(
        self,
        stops: Mapping[str, LogOffset | None],
        resets: Mapping[str, Resets],
        until: Mapping[str, int | None],
        *,
        untold: bool,
    ) -> dict[str, Step]:
        """The logs of these shards, each up to its stop, as ShardReader.read has it; of those that can be read."""
        states, unshown = self.stands.cut.shards, self.stands.unshown
        return self._shards.each(
            stops,
            lambda shard: self._shards.readers[shard].read(
                states[shard],
                stops[shard],
                resets.get(shard),
                until=until.get(shard),
                shown=shard not in unshown,
                untold=untold,
            ),
        )

    def _asked(self, tick: Tick) -> Mapping[str, Resets]:
        """How often RESET was said on the shards whose logs went on, as far as it is due; of those that answer."""
        shards = self.stands.cut.shards
        moved = {
            shard: shards[shard] for shard, at in tick.offsets.items() if shards[shard].position.at != at
        }
        return self._resets(moved if self._is_due else self._shards.unknown(moved))

    def _resets(self, shards: Collection[str]) -> Mapping[str, Resets]:
        """How often RESET was said on the shards; of those that answer."""
        try:
            return self._clock.resets(shards) if self._clock is not None and shards else {}
        except CatchmentError as error:
            if error.retry is Retry.NEVER:
                raise
            return {}
