"""Reads a shard's log, pulled: its images and groups, and the facts that prove where the reader stands."""

from collections.abc import Generator, Iterator
from types import TracebackType
from typing import Self

import msgspec
import pyarrow as pa

from catchment.model.definition import is_hidden
from catchment.model.errors import ConnectionLost
from catchment.model.position import LogOffset, Position, Server
from catchment.model.source import Endpoint
from catchment.model.table import Table
from catchment.source.dumps import Dumps
from catchment.source.groups import Tally
from catchment.source.session import Session
from catchment.source.standing import StandingDump
from catchment.source.stretch import Stretch, stretch_of
from catchment.source.wanted import Wanted
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.facts import Images

# So much is decoded before it is handed on.
TAKE_BYTES = 8 << 20
# So much log is read at most until the consumer has its turn again, also where the log holds nothing for it.
TURN_BYTES = 32 << 20
# So much is read until groups are compared with a budget or a time. A socket has a few KiB at a time, and each piece
# costs the consumer some milliseconds for every table in it.
_LOOK_BYTES = 1 << 20


class EndedGroups(msgspec.Struct, frozen=True):
    """EndedGroups that ended (schema: wire.log.groups.SCHEMA). All of their images came before; there may be none."""

    batch: pa.RecordBatch


Piece = Images | EndedGroups


class LogReader(Iterator[Piece]):
    """The pieces of a log in its order, read while somebody pulls.

    No byte is read while the consumer has its turn: what it does not take stays at the server. A session is opened with
    the first piece. It is given up with the last one, when `with` is left, or when nobody has the reader any more.
    """

    def __init__(self, reading: "_Reading", endpoint: Endpoint, server: Server | None) -> None:
        self._reading = reading
        # It does not know this object: so it is closed as soon as nobody has that any more.
        self._pieces = _pieces(reading, endpoint, server)

    def __next__(self) -> Piece:
        """The next piece; raises SourceError, WireError, and what `on_ddl` of what is wanted raises."""
        return next(self._pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def along(self, standing: StandingDump | None) -> Self:
        """The same from a dump that stands where it starts, if there is one; call it in front of the first piece.

        Without a stop it then reads what has come, and the rest of the last group of that.
        """
        self._reading.standing = standing
        return self

    def on(self, session: Session) -> Self:
        """The same on a session that was asked something before (`dump.session_for_dump`), which is the reader's from
        here on; call it in front of the first piece."""
        self._reading.session = session
        return self

    def close(self) -> None:
        """Leave, in the thread that pulls: the session is given up at once, and no piece follows."""
        self._pieces.close()
        if (session := self._reading.taken_session()) is not None:
            session.abandon()

    @property
    def stretch(self) -> Stretch:
        """What was met: all of it with the last piece, before that up to the last group that was handed on.

        A reader from its `at` on gives the rest. Images of groups behind it may have come already: their ordinals
        (GROUP) are not below `groups`.
        """
        return self._reading.stretch

    def images(self) -> Iterator[Images]:
        """The pieces without the groups."""
        return (piece for piece in self if isinstance(piece, Images))

    def to_the_end(self) -> Stretch:
        """Take what is left of the pieces; the stretch. Raises as `__next__`."""
        for _ in self:
            pass
        return self.stretch


def read_log(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset | Position,
    stop: LogOffset | None,
    wanted: Wanted,
    *,
    epoch: LogOffset | None = None,
    budget: int | None = None,
    until: int | None = None,
) -> LogReader:
    """A reader of the log from `start` to `stop`; without one, to where the log ends as of the first piece, or beyond.

    From a position, the event that ends there is read again, too: Diverged when it is another one than before.

    `epoch`: the offset whose groups `boundary` tells apart. `budget`: end with the first group by which so many bytes
    of log are read. `until`: end in front of the first group that was written later, in seconds since 1970. The stretch
    is what lies before; images may come of later groups too.
    """
    return LogReader(_Reading(start, stop, wanted, Tally(epoch, budget, until)), endpoint, server)


def read_facts(
    endpoint: Endpoint,
    server: Server | None,
    start: LogOffset | Position,
    stop: LogOffset | None,
    *,
    budget: int | None = None,
) -> Stretch:
    """As `read_log`, without any row and to the end: groups, files, statements and XA transactions."""
    with read_log(endpoint, server, start, stop, Wanted(), budget=budget) as log:
        return log.to_the_end()


class _Reading:
    """How far a reader has come: its decoder, and what it has handed on."""

    def __init__(
        self, start: LogOffset | Position, stop: LogOffset | None, wanted: Wanted, tally: Tally
    ) -> None:
        self.start = start.at if isinstance(start, Position) else start
        self.stop = stop
        self.decoder = LogDecoder(
            self.start,
            wanted.keys,
            stop,
            keys=wanted.keys,
            kinds=wanted.kinds,
            definitions=wanted.definitions,
            on_ddl=wanted.on_ddl,
            before=wanted.before,
            behind=start.event if isinstance(start, Position) else None,
        )
        self.tally = tally
        self.standing: StandingDump | None = None
        self.session: Session | None = None
        self._masks = wanted.masks
        self.read_bytes = 0
        self.over = False
        self._turn_bytes = 0

    @property
    def stretch(self) -> Stretch:
        return stretch_of(self.decoder, self.tally, self.start, self.read_bytes, over=self.over)

    def taken_session(self) -> Session | None:
        """The session that no dump has yet, which is the caller's now."""
        session, self.session = self.session, None
        return session

    @property
    def due(self) -> bool:
        """Whether the consumer should have its turn."""
        budget, until = self.tally.budget, self.tally.until
        most = TURN_BYTES if budget is None and until is None else min(budget or _LOOK_BYTES, _LOOK_BYTES)
        return self.decoder.pending_bytes >= TAKE_BYTES or self.read_bytes - self._turn_bytes >= most

    def take(self) -> Iterator[Piece]:
        """What has been decoded, of groups as much as the budget allows."""
        self._turn_bytes = self.read_bytes
        for images in map(_without_hidden, self.decoder.take_images()):
            masks = self._masks.get(images.table.id)
            yield images if masks is None else Images(images.table, masks.applied(images.batch))
        yield EndedGroups(
            self.tally.add(self.decoder.take_groups(), [file.name for file in self.decoder.files])
        )


def _pieces(reading: _Reading, endpoint: Endpoint, server: Server | None) -> Generator[Piece, None, None]:
    """The one loop over a log: pull a dump, hand on what it brought, go on with the next one."""
    decoder, tally = reading.decoder, reading.tally
    if reading.standing is not None:
        with reading.standing.into(decoder, to_stop=reading.stop is not None) as part:
            while not tally.full and (size := part.pull()):
                reading.read_bytes += size
                if reading.due:
                    yield from reading.take()
    else:
        session = reading.taken_session()
        dumps = Dumps(endpoint, server, decoder, to_the_end=reading.stop is None, session=session)
        at: LogOffset | None = decoder.begins
        while at is not None:
            with dumps.dump(at) as dump:
                while not tally.full and (size := dump.pull()):
                    # Before anything of a file is handed on that may not be the next one.
                    dumps.must_follow(dump)
                    reading.read_bytes += size
                    if reading.due:
                        yield from reading.take()
            at = dumps.start_behind(dump)
    if not decoder.files:
        # So ends a dump whose thread is killed, by KILL QUERY or a shutdown, before it has sent a format event.
        raise ConnectionLost(f"shard {endpoint.shard}: the server ended a dump before it had begun")
    reading.over = True
    yield from reading.take()


def _without_hidden(images: Images) -> Images:
    """Without the hash columns that MariaDB keeps for a UNIQUE key over a BLOB: no SELECT shows them."""
    table, batch = images.table, images.batch
    hidden = {column.name for column in table.columns if is_hidden(column.name)}
    if not hidden:
        return images
    shown = tuple(column for column in table.columns if column.name not in hidden)
    names = [name for name in batch.schema.names if name not in hidden]
    return Images(Table(table.id, shown, table.key), batch.select(names))
