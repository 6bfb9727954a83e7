"""All shards asked at once, each in its own session: what they say, and why others say nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

from catchment import world
from catchment.feed.shard_reader import ShardReader
from catchment.model.errors import ConnectionLost
from catchment.model.retries import may_pass

_T = TypeVar("_T")

# Nobody waits longer for a shard that has been silent for so long: the others go on.
LATE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Answers(Generic[_T]):
    """What shards said, in their order, and the errors of those that did not."""

    found: dict[str, _T]
    errors: dict[str, Exception]

    def worst(self, *, bears: bool) -> Exception | None:
        """The error of a shard that did not answer, one that cannot pass before all others; `bears` as `may_pass` has
        it."""
        return min(self.errors.values(), key=partial(may_pass, bears=bears), default=None)


def ask_all(
    readers: Mapping[str, ShardReader], ask: Callable[[ShardReader], _T], pool: world.Pool, *, late: bool
) -> Answers[_T]:
    """Ask every shard. `late`: a shard may still owe an answer then, and is not asked until it has given it. Else the
    call ends when the slowest has answered or given up.

    A session serves one thread at a time (PyMySQL's `threadsafety` is 1).
    """
    found: dict[str, _T] = {}
    errors: dict[str, Exception] = {}
    free = {shard: reader for shard, reader in readers.items() if not (late and _owes(reader))}
    # One of them by this thread: to hand a reading over takes half as long again as to read. It might wait for long.
    own = next(iter(free)) if free and not late else None
    asked = {shard: pool.submit(ask, reader) for shard, reader in free.items() if shard != own}
    if own is not None:
        try:
            found[own] = ask(readers[own])
        except Exception as error:
            errors[own] = error
    for shard, future in asked.items():
        readers[shard].owed = future
        try:
            failed = future.exception(_patience(readers[shard]) if late else None)
        except TimeoutError:
            continue
        readers[shard].owed = None
        if failed is None:
            found[shard] = future.result()
        elif isinstance(failed, Exception):
            errors[shard] = failed
        else:
            raise failed
    silent = {
        shard: _silent(readers[shard]) for shard in readers if shard not in found and shard not in errors
    }
    return Answers({shard: found[shard] for shard in readers if shard in found}, errors | silent)


def _owes(reader: ShardReader) -> bool:
    """Whether the answer to an earlier question has still to come."""
    if reader.owed is not None:
        try:
            reader.owed.exception(0)
        except TimeoutError:
            return True
        reader.owed = None
    return False


def _patience(reader: ShardReader) -> float:
    return max(0.0, reader.heard + LATE_SECONDS - world.steady_seconds())


def _silent(reader: ShardReader) -> ConnectionLost:
    seconds = world.steady_seconds() - reader.heard
    return ConnectionLost(f"shard {reader.endpoint.shard}: it does not answer, for {seconds:.0f} s by now")
