"""`catchment.stream`: a source's rows and then their changes, as an iterator of typed events."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from types import TracebackType
from typing import Self

from catchment.config import CopyConfig
from catchment.model.errors import ConfigError
from catchment.model.table import Table
from catchment.serve.stream.ahead import Ahead
from catchment.serve.stream.batches_of import parts
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.events import Event, Heartbeat, Part
from catchment.serve.stream.events_of import Teller
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.source import Given as GivenSource
from catchment.serve.stream.source import source_of
from catchment.serve.stream.tables import ALL, Chosen
from catchment.serve.stream.tables import Given as GivenRule
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.turns import Pace, started
from catchment.serve.stream.vgtid import Given as GivenVGtid


class Stream(Iterator[Event], AsyncIterator[Event]):
    """Events while somebody pulls; it has no end. Use it as a context manager, which gives its sessions back.

    One thread or task at a time may pull. After an error begin a new stream with the last vgtid.
    """

    def __init__(self, epochs: Epochs, flags: Flags) -> None:
        self._epochs = epochs
        self._flags = flags
        self._turned = self._turns()
        self._events = self._told()
        self._ahead = Ahead(self._events)
        self._pulled = self._ends = False

    @property
    def source(self) -> Sequence[str]:
        """The shards, as `keyspace/shard`."""
        return sorted(self._epochs.stands.cut.shards)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        """The next event. Raises CatchmentError."""
        self._pulled = True
        return self._ahead.pulled() or next(self._events)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event; others may run while it is waited for. Where the wait is cancelled, the next one gets what it
        would have got. Raises CatchmentError."""
        self._pulled = True
        event = await self._ahead.next()
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
        """End the stream and its sessions; no event follows. Waits for a pull whose task was cancelled."""
        self._ends = True
        self._ahead.end()
        self._turned.close()
        self._epochs.stop()

    def batches(self) -> Iterator[Part]:
        """The same as Arrow, for throughput: rows of each table with their change columns, and a vgtid behind all of a
        cut. Instead of events: raises ConfigError once one was pulled."""
        self._must_be_whole("batches")
        return self._batches()

    def turns(self) -> Iterator[Turn | Heartbeat]:
        """The same by turns, each with all that lies between two vgtids, for those who tell it in a form of their own.
        Instead of events: raises ConfigError once one was pulled."""
        self._must_be_whole("turns")
        return self._turned

    @property
    def tables(self) -> Sequence[Table]:
        """The tables as their rows are told now, once for each shard."""
        return self._epochs.definitions.all()

    def _must_be_whole(self, what: str) -> None:
        if self._pulled:
            raise ConfigError(f"{what}: events were pulled from this stream already; begin another one")
        self._pulled = True

    def _batches(self) -> Iterator[Part]:
        for turn in self._turned:
            yield from [turn] if isinstance(turn, Heartbeat) else parts(turn)

    def _told(self) -> Iterator[Event]:
        teller = Teller()
        for turn in self._turned:
            yield from [turn] if isinstance(turn, Heartbeat) else teller.events(turn)

    def _turns(self) -> Generator[Turn | Heartbeat, None, None]:
        yield self._epochs.begun()
        pace = Pace(self._flags.heartbeat_interval)
        while not self._ends:
            told = pace.told(self._epochs.turn(pace.wait))
            if told is not None:
                yield told


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
    flags = flags or Flags()
    return Stream(started(source_of(source), Chosen.of(rules), vgtid, flags, copy or CopyConfig()), flags)
