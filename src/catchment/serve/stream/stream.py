"""`catchment.stream`: a source's rows and then their changes, as an iterator of typed events."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from types import TracebackType
from typing import Self

from catchment import world
from catchment.config import CopyConfig
from catchment.model.errors import ConfigError
from catchment.serve.stream.batches_of import parts
from catchment.serve.stream.begin import first_cut
from catchment.serve.stream.epochs import Epochs, Turn
from catchment.serve.stream.events import Event, Heartbeat, Part
from catchment.serve.stream.events_of import Teller
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.source import Given as GivenSource
from catchment.serve.stream.source import Source, source_of
from catchment.serve.stream.tables import ALL, Chosen
from catchment.serve.stream.tables import Given as GivenRule
from catchment.serve.stream.vgtid import COPY, CURRENT, Starts, StreamCut, read
from catchment.serve.stream.vgtid import Given as GivenVGtid

_WAIT_SECONDS = 1.0
_PLACE_SECONDS = 10.0


class Stream(Iterator[Event], AsyncIterator[Event]):
    """Events while somebody pulls; it has no end. Use it as a context manager, which gives its sessions back.

    One thread or task at a time may pull. After an error begin a new stream with the last vgtid.
    """

    def __init__(self, epochs: Epochs, flags: Flags) -> None:
        self._epochs = epochs
        self._flags = flags
        self._turned = self._turns()
        self._events = self._told()
        self._pulled = False

    @property
    def source(self) -> Sequence[str]:
        """The shards, as `keyspace/shard`."""
        return sorted(self._epochs.stands.cut.shards)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """The next event. Raises CatchmentError."""
        self._pulled = True
        return next(self._events)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event; others may run while it is waited for. Raises CatchmentError."""
        self._pulled = True
        event = await asyncio.to_thread(next, self._events, None)
        if event is None:
            raise StopAsyncIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End the stream and its sessions; no event follows."""
        self._turned.close()
        self._epochs.stop()

    def batches(self) -> Iterator[Part]:
        """The same as Arrow, for throughput: rows of each table with their change columns, and a vgtid behind all of a
        cut. Instead of events: raises ConfigError once one was pulled."""
        if self._pulled:
            raise ConfigError("batches: events were pulled from this stream already; begin another one")
        self._pulled = True
        return self._batches()

    def _batches(self) -> Iterator[Part]:
        for turn in self._turned:
            yield from [turn] if isinstance(turn, Heartbeat) else parts(turn)

    def _told(self) -> Iterator[Event]:
        teller = Teller()
        for turn in self._turned:
            yield from [turn] if isinstance(turn, Heartbeat) else teller.events(turn)

    def _turns(self) -> Generator[Turn | Heartbeat, None, None]:
        """A vgtid comes first, and from then on at least every ten seconds in which a log went on. A client may begin
        again there, however seldom its own tables change."""
        yield self._epochs.begun()
        heard = placed = world.steady_seconds()
        wait = min(self._flags.heartbeat_interval or _WAIT_SECONDS, _WAIT_SECONDS)
        while True:
            turn = self._epochs.turn(wait)
            now = world.steady_seconds()
            if turn is not None and (turn.told or now - placed >= _PLACE_SECONDS):
                yield turn
                heard = placed = world.steady_seconds()
            elif self._flags.heartbeat_interval and now - heard >= self._flags.heartbeat_interval:
                yield Heartbeat(world.now_us())
                heard = world.steady_seconds()


def stream(
    source: GivenSource | Sequence[GivenSource],
    *,
    vgtid: GivenVGtid = None,
    rules: Sequence[GivenRule] = ALL,
    flags: Flags | None = None,
    copy: CopyConfig | None = None,
) -> Stream:
    """A stream of the rows of `source`, which is a feed file or a mapping as its section `source`, or several of these.

    `vgtid`: where it begins, as one that a stream gave, positions as `Start` has them, or "current". Without one the
    rows that exist come first. `rules`: which tables, as under `tables` of a feed file, and `Rule`s for what
    is given of their rows.

    Raises ConfigError, Unsupported for tables that cannot be streamed, and SourceError where a shard cannot serve.
    """
    shards, chosen, flags = source_of(source), Chosen.of(rules), flags or Flags()
    begin = read(vgtid, shards)
    current: list[str] = []
    copies: list[str] = []
    if isinstance(begin, Starts):
        current = [shard for shard, start in begin.shards.items() if start.gtid == CURRENT]
        copies = [shard for shard, start in begin.shards.items() if start.gtid == COPY and not start.tables]
        stands = first_cut(begin, shards.endpoints, chosen)
    else:
        stands = begin
        _must_be_the_same(stands, shards, flags)
    epochs = Epochs(
        shards.endpoints,
        chosen,
        stands,
        copy or CopyConfig(),
        aligned=flags.minimize_skew,
        copies=copies,
    )
    try:
        epochs.start()
        epochs.reach_now(current)
    except BaseException:
        epochs.stop()
        raise
    return Stream(epochs, flags)


def _must_be_the_same(stands: StreamCut, source: Source, flags: Flags) -> None:
    added = sorted(source.endpoints.keys() - stands.cut.shards.keys())
    if added and flags.stop_on_reshard:
        raise ConfigError(
            f"vgtid: it stands for {', '.join(sorted(stands.cut.shards))}, and the source has {', '.join(added)}, too: "
            "flags.stop_on_reshard ends the stream there; begin those shards in a stream of their own"
        )
