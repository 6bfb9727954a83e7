"""The shards of a stream, read side by side. One that does not answer stays where it is, and the others go on."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from msgspec.structs import replace

from catchment import world
from catchment.feed.planner import Limits, Planner
from catchment.model.cut import Cut, Tick
from catchment.model.errors import CatchmentError
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.serve.stream.advance import WHILE_COPIED, Void
from catchment.serve.stream.away import Away
from catchment.serve.stream.resume import altered_since, copied_again, rechosen
from catchment.serve.stream.shard_reader import ShardReader, Step
from catchment.serve.stream.standing_log import come
from catchment.serve.stream.tables import Chosen, Definitions, must_be_usable
from catchment.source.clocks import clock_ahead
from catchment.source.identity import must_go_on
from catchment.source.log_names import cut_at_next_names


class StreamShards:
    """One thread at a time may call it. `readers`: one for each shard. `limits`: of chunks. `turn_bytes`: of the log of
    a shard in one turn."""

    def __init__(
        self, endpoints: Mapping[str, Endpoint], chosen: Chosen, limits: Limits, turn_bytes: int
    ) -> None:
        self._endpoints = endpoints
        self._chosen = chosen
        self._away = Away()
        self.readers = {
            shard: ShardReader(endpoint, chosen, Planner({shard: endpoint}, limits), turn_bytes)
            for shard, endpoint in endpoints.items()
        }
        self._pool = world.pool(len(endpoints), "turn")

    def begun(self, cut: Cut, copies: Collection[str]) -> tuple[Cut, Mapping[str, list[Void]]]:
        """Where a stream goes on that was at `cut`, and the tables of each shard whose copies begin again. `copies`:
        shards of which it begins to copy all tables.

        Raises Diverged or Purged where a shard does not go on, CatchmentError.
        """
        with world.pool(len(self._endpoints), "resume") as pool:
            shards = list(cut.shards)
            found = pool.map(
                lambda shard: must_go_on(self._endpoints[shard], cut.shards[shard].position), shards
            )
            cut = cut_at_next_names(cut, dict(zip(shards, found, strict=True)))
            resumed = list(pool.map(lambda shard: self._resumed(shard, cut.shards[shard]), shards))
            began = list(
                pool.map(
                    lambda shard, known: self.readers[shard].began(known[0], copies=shard in copies),
                    shards,
                    resumed,
                )
            )
        states = {shard: state for shard, (state, _) in zip(shards, began, strict=True)}
        again = {
            shard: [*voids, *lost]
            for shard, (_, voids), (_, lost) in zip(shards, resumed, began, strict=True)
            if voids or lost
        }
        return replace(cut, shards=states), again

    def clocks_ahead(self) -> dict[str, float]:
        """By how many seconds each shard's clock is ahead of this one. Raises CatchmentError."""
        with world.pool(len(self._endpoints), "resume") as pool:
            return dict(zip(self._endpoints, pool.map(clock_ahead, self._endpoints.values()), strict=True))

    def must_be_usable(self) -> None:
        """Raise Unsupported where rows of some tables cannot be told."""
        must_be_usable(one.known for one in self.readers.values() if one.known is not None)

    @property
    def definitions(self) -> Definitions:
        """The tables as their rows are told now."""
        return Definitions(tuple(one.known for one in self.readers.values() if one.known is not None))

    def follow(self, states: Mapping[str, ShardState]) -> bool:
        """Whether the logs of all shards come by themselves from these states on, and no row of theirs needs a tick:
        none is to be copied, and no foreign key changes any."""
        return all(
            state.idle and not state.keys and self.readers[shard].follows(state)
            for shard, state in states.items()
        )

    def come(self, seconds: float) -> bool:
        """Whether the standing dump of a shard receives log within so many seconds; also True where one has ended."""
        return come([reader.log for reader in self.readers.values()], seconds)

    def unknown(self, states: Mapping[str, ShardState]) -> list[str]:
        """The shards that have to be asked whether their log is still the one of these states."""
        return [shard for shard, state in states.items() if not self.readers[shard].is_known(state)]

    def copied(self, steps: Mapping[str, Step], tick: Tick) -> dict[str, Step]:
        """These steps with the next chunks of their tables, as of a tick; of those that answer."""
        return self.each(steps, lambda shard: self.readers[shard].copied(steps[shard], tick))

    def each(self, shards: Iterable[str], step: Callable[[str], Step]) -> dict[str, Step]:
        """A step of each of these shards, side by side; of those that answer."""
        # The last one by this thread: to hand a small turn over takes as long as to read it.
        *others, own = shards or (None,)
        asked = {shard: self._pool.submit(step, shard).result for shard in others if shard is not None}
        if own is not None:
            asked[own] = partial(step, own)
        found: dict[str, Step] = {}
        for shard, result in asked.items():
            try:
                found[shard] = result()
            except CatchmentError as error:
                self._away.missed(shard, error)
        return found

    def took(self, steps: Mapping[str, Step], whole: Collection[str]) -> None:
        """These steps count; of the shards in `whole` nothing is missing. Without any it waits, longer each time."""
        for shard, step in steps.items():
            self.readers[shard].took(step)
        for shard in whole:
            self._away.met(shard)
        self._away.pause(gained=bool(whole))

    def rest(self, states: Mapping[str, ShardState]) -> None:
        """As ShardReader.rest has it, for all shards."""
        for shard, state in states.items():
            self.readers[shard].rest(state)

    def close(self) -> None:
        """Give all sessions back."""
        for one in self.readers.values():
            one.close()
        self._pool.shutdown()

    def _resumed(self, shard: str, state: ShardState) -> tuple[ShardState, list[Void]]:
        """The shard's state, as what has become of its tables since allows it, and those that were altered."""
        endpoint = self._endpoints[shard]
        again = altered_since(endpoint, state)
        voids = [Void(table, WHILE_COPIED) for table in again]
        return rechosen(endpoint, copied_again(state, again), self._chosen), voids
