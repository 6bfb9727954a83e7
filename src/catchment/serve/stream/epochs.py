"""The stream's clock and its turns: from one cut to the next, pulled by whoever reads.

A turn reads the log of every shard up to a tick, then copies chunks as of there. A shard that cannot be read stays
where it stands, and the others go on, until it has been away for too long.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from catchment import world
from catchment.config import CopyConfig
from catchment.feed.clock import Clock
from catchment.feed.planner import Limits, Planner
from catchment.model.cut import Cut, Tick
from catchment.model.errors import CatchmentError, CutMissed, Retry
from catchment.model.position import Resets
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, Table
from catchment.serve.stream.advance import SHARD_ADDED, WHILE_COPIED, Told, Void
from catchment.serve.stream.alignment import Alignment
from catchment.serve.stream.away import AWAY_SECONDS_MAX, Away
from catchment.serve.stream.chunks import CopiedRows
from catchment.serve.stream.resume import altered_since, copied_again, rechosen
from catchment.serve.stream.shard_reader import ShardReader, Step
from catchment.serve.stream.tables import Chosen, Definitions, must_be_usable
from catchment.serve.stream.vgtid import StreamCut
from catchment.source.clocks import clock_ahead
from catchment.source.identity import must_go_on
from catchment.source.standby import Standby

# Between two ticks: while logs stand still, and behind one by which all was told.
TICK_SECONDS, _BUSY_SECONDS = 0.1, 0.005
# Log of one shard and turn: after a long pause it comes in parts that a consumer can hold.
TURN_BYTES = 32 << 20
_NOW_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class ShardTurn:
    """What one shard told in a turn; `told` None where its log stood still. `again`: tables whose copies began when
    the stream was resumed."""

    shard: str
    told: Told | None
    copied: Sequence[CopiedRows] = ()
    again: Sequence[Void] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """What the shards told up to a cut. `completes`: with it all rows are copied. `empty`: tables of which there was
    none to copy. `ahead`: by how many seconds each shard's clock is, where transactions are told by their times."""

    stands: StreamCut
    shards: Sequence[ShardTurn]
    completes: bool = False
    empty: Sequence[ShardTable] = ()
    ahead: Mapping[str, float] | None = None

    @property
    def told(self) -> bool:
        """Whether there is anything that a client wants to hear of."""
        return any(one.again or one.copied or (one.told and one.told.tells) for one in self.shards)

    @property
    def tables(self) -> list[Table]:
        """The tables of its rows, with the columns that these have; one for each version of a table and shard."""
        copied = [one.table for shard in self.shards for one in shard.copied]
        changed = [one.table for shard in self.shards if shard.told for one in shard.told.changed]
        return copied + changed


@dataclass(frozen=True, slots=True)
class ShardTold:
    """The time of the last transaction that was told of a shard, in seconds since 1970, and when that was (steady
    seconds)."""

    event_time: int
    told_at: float


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
        self._chosen = chosen
        self._endpoints = {shard: endpoints[shard] for shard in stands.cut.shards}
        limits = Limits(copying.chunk_time, copying.chunk_rows_max, 1, copying.log_budget)
        self._aligned = aligned
        self._copies = copies
        self._turn_bytes = turn_bytes
        self._alignment: Alignment | None = None
        self._again: dict[str, Sequence[Void]] = {
            shard: [Void(copy.table, SHARD_ADDED) for copy in stands.cut.shards[shard].copies]
            for shard in added
        }
        self._away = Away()
        self._clock: Clock | None = None
        self._pool = world.pool(len(self._endpoints), "turn")
        self._shards = {
            shard: ShardReader(
                endpoint,
                chosen,
                Planner({shard: endpoint}, limits),
                Standby(endpoint, stands.cut.shards[shard].position.server, self._pool),
                turn_bytes,
            )
            for shard, endpoint in self._endpoints.items()
        }
        self._tick = 0
        self._apart = TICK_SECONDS
        self._told: dict[str, ShardTold] = {}

    def start(self) -> None:
        """Begin to ask the shards where their logs end. Raises Diverged or Purged where one does not go on."""
        known = self.stands.cut
        with world.pool(len(known.shards), "resume") as pool:
            found = pool.map(
                lambda shard: must_go_on(self._endpoints[shard], known.shards[shard].position), known.shards
            )
            self.stands = replace(self.stands, cut=known.moved(dict(zip(known.shards, found, strict=True))))
            positions = self.stands.cut.positions
            states = dict(zip(positions, pool.map(self._resumed, positions), strict=True))
            if self._aligned:
                ahead = pool.map(lambda shard: clock_ahead(self._endpoints[shard]), positions)
                self._alignment = Alignment(dict(zip(positions, ahead, strict=True)), self._turn_bytes)
            states = dict(zip(positions, pool.map(self._began, positions, states.values()), strict=True))
        self.stands = replace(self.stands, cut=replace(self.stands.cut, shards=states))
        servers = {shard: position.server for shard, position in positions.items()}
        clock = Clock(
            self._endpoints, servers, TICK_SECONDS, self.stands.cut.epoch, away_max=AWAY_SECONDS_MAX
        )
        self._clock = clock.start(positions)

    def must_be_usable(self) -> None:
        """Raise Unsupported where rows of some tables cannot be told."""
        must_be_usable(one.known for one in self._shards.values() if one.known is not None)

    def reach_now(self, shards: Collection[str]) -> None:
        """Have these shards stand at this moment, and tell nothing of the way: what is visible now lies before it.

        Raises CatchmentError.
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
            left -= {shard for shard in reached if self._shards[shard].sees_children(states[shard])}
            # Where a turn was too short for the log, the next one goes on to the same place.
            again = left <= offsets.keys() - reached and self.stands.cut.epoch == tick.number
            tick = tick if again else None

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
        return Definitions(tuple(one.known for one in self._shards.values() if one.known is not None))

    def now(self, timeout: float) -> Tick | None:
        """Where the logs end, asked from this moment on; None where no shard said it in so many seconds. Any thread may
        ask. Raises CatchmentError."""
        assert self._clock is not None, "start first"
        return self._clock.after(0, timeout, since=world.steady_seconds())

    def turn_to(self, stands: StreamCut) -> Turn | None:
        """What the shards tell up to where another stream stands, later than this one; None where nothing moved. Raises
        CatchmentError."""
        turn = self._taken(stands.cut.tick, None, stands.unshown)
        self._tick = max(self._tick, stands.cut.epoch)
        return turn

    def stop(self) -> None:
        """End the clock and its sessions."""
        if self._clock is not None:
            self._clock.stop()
        for one in self._shards.values():
            one.close()
        self._pool.shutdown()

    def turn(self, timeout: float) -> Turn | None:
        """The next turn; None where nothing was written for so many seconds. Raises CatchmentError."""
        assert self._clock is not None, "start first"
        ends = world.steady_seconds() + timeout
        while (left := ends - world.steady_seconds()) > 0:
            tick = self._clock.after(self.tick, left, self._apart)
            if tick is None:
                return None
            self._tick = tick.number
            self._apart = min(max(self._apart * 2, _BUSY_SECONDS), TICK_SECONDS)
            if self.stands.cut.idle and self.stands.cut.stood_at(tick):
                self._rested(tick)
                continue
            turn = self._taken(tick, self._alignment)
            if turn is not None:
                self._apart = 0.0 if self.stands.unshown else _BUSY_SECONDS
                return turn
        return None

    def _rested(self, tick: Tick) -> None:
        """The shards' logs stood still: those that wait for one may go on."""
        for shard, state in self.stands.cut.shards.items():
            self._shards[shard].rest(state)
        if self._alignment is not None:
            self._alignment.took(dict.fromkeys(tick.offsets), world.now_us() / 1e6)

    def _taken(
        self, tick: Tick, align: Alignment | None, hidden: Collection[str] = (), *, untold: bool = False
    ) -> Turn | None:
        """What the shards tell up to a tick; None where nothing moved, and where none could be read. `hidden`: shards
        whose offset no tick showed, since another stream stands there before the end of one. `untold`: nobody is told
        of it."""
        before = self.stands
        logs = self._logs(tick, align, untold=untold)
        copying = [shard for shard, step in logs.items() if not step.state.idle]
        copies = self._each(copying, lambda shard: self._shards[shard].copied(logs[shard], tick))
        steps = {**logs, **copies}
        for shard, step in steps.items():
            self._shards[shard].took(step)
        whole = steps.keys() - (set(copying) - copies.keys())
        for shard in whole:
            self._away.met(shard)
        self._away.pause(gained=bool(whole))
        shards = {**before.cut.shards, **{shard: step.state for shard, step in steps.items()}}
        moved = [shard for shard, step in steps.items() if step.state != before.cut.shards[shard]]
        if not moved:
            return None
        for shard in moved:
            self._shards[shard].prepare()
        told = {shard: step.told for shard, step in steps.items()}
        self._told |= {
            shard: ShardTold(one.event_time, world.steady_seconds())
            for shard, one in told.items()
            if one is not None and one.event_time
        }
        unshown = {shard for shard in before.unshown if told.get(shard) is None}
        unshown |= {shard for shard, one in told.items() if one is not None and not one.shown}
        unshown |= set(hidden)
        self.stands = replace(
            before, cut=Cut(tick.number, tick.time_us, shards), unshown=tuple(sorted(unshown))
        )
        assert self._clock is not None
        self._clock.verified(self.stands.cut.positions)
        # A table may begin again and be copied whole in one turn.
        ends = any(rows.done for step in copies.values() for rows in step.copied)
        completes = self.stands.cut.copied and (ends or not before.cut.copied)
        turns = [ShardTurn(shard, step.told, step.copied) for shard, step in steps.items()]
        return Turn(
            self.stands, turns, completes, ahead=None if self._alignment is None else self._alignment.ahead
        )

    def _logs(self, tick: Tick, align: Alignment | None, *, untold: bool) -> dict[str, Step]:
        """The logs of the shards that can be read."""
        now, resets = world.now_us() / 1e6, self._resets(tick)
        until = align.until(tick.offsets, now) if align else {}
        steps = self._each(
            tick.offsets,
            lambda shard: self._log(shard, tick, resets.get(shard), until.get(shard), untold=untold),
        )
        if align is None:
            return steps
        while over := align.over({shard: step.told for shard, step in steps.items()}, now):
            kept = {shard: step for shard, step in steps.items() if shard not in over}
            steps = kept | self._each(
                over, lambda shard: self._log(shard, tick, resets.get(shard), over[shard], untold=untold)
            )
        align.took({shard: step.told for shard, step in steps.items()}, now)
        return steps

    def _each(self, shards: Iterable[str], step: Callable[[str], Step]) -> dict[str, Step]:
        """A step of each of these shards, side by side; of those that answer."""
        asked = {shard: self._pool.submit(step, shard) for shard in shards}
        found: dict[str, Step] = {}
        for shard, future in asked.items():
            try:
                found[shard] = future.result()
            except CatchmentError as error:
                self._away.missed(shard, error)
        return found

    def _resets(self, tick: Tick) -> Mapping[str, Resets]:
        """How often RESET was said on the shards whose logs went on; of those that answer."""
        shards = self.stands.cut.shards
        moved = [shard for shard, at in tick.offsets.items() if shards[shard].position.at != at]
        try:
            return self._clock.resets(moved) if self._clock is not None and moved else {}
        except CatchmentError as error:
            if error.retry is Retry.NEVER:
                raise
            return {}

    def _log(self, shard: str, tick: Tick, resets: Resets | None, until: int | None, *, untold: bool) -> Step:
        state, shown = self.stands.cut.shards[shard], shard not in self.stands.unshown
        return self._shards[shard].read(
            state, tick.offsets[shard], resets, until=until, shown=shown, untold=untold
        )

    def _resumed(self, shard: str) -> ShardState:
        """The shard's state, as what has become of its tables since allows it."""
        endpoint, state = self._endpoints[shard], self.stands.cut.shards[shard]
        again = altered_since(endpoint, state)
        if again:
            self._again[shard] = [Void(table, WHILE_COPIED) for table in again]
        return rechosen(endpoint, copied_again(state, again), self._chosen)

    def _began(self, shard: str, state: ShardState) -> ShardState:
        """The state with what is known of its tables."""
        state, lost = self._shards[shard].began(state, copies=shard in self._copies)
        if lost:
            self._again[shard] = [*self._again.get(shard, ()), *lost]
        return state
