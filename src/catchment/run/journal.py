"""What a feed's runs leave in the state store beside its epochs: how the newest one ended, and what troubled it.

Records are JSON, each replaced whole. Only the holder of the lease writes; a store without the table has no entries.
"""

import time
from typing import TypeVar

import msgspec
from sqlalchemy import Connection, delete, insert, inspect, select

from catchment.model.errors import INTERRUPTED, CatchmentError, StateError
from catchment.run.database import journal_table
from catchment.run.store import Store

KEEP_ERRORS = 20
MESSAGE_MAX = 4000
_RUN, _ALIVE, _ERRORS = "run", "alive", "errors"

T = TypeVar("T")


class ErrorNote(msgspec.Struct, frozen=True):
    """Equal errors of a feed, `count` of them between two times (microseconds since 1970). `kind` is the name of
    their class; `shard` is empty where the error does not know it."""

    kind: str
    message: str
    shard: str
    first_us: int
    last_us: int
    count: int = 1

    @classmethod
    def of(cls, error: BaseException, now_us: int) -> "ErrorNote":
        """An error met now. What an error of another library says may hold a secret: it is left out."""
        ours = isinstance(error, CatchmentError)
        message = str(error) if ours else "a fault of this program; the run printed where it happened"
        shard = error.shard if isinstance(error, CatchmentError) else ""
        return cls(type(error).__name__, message[:MESSAGE_MAX], shard, now_us, now_us)

    def equals(self, other: "ErrorNote") -> bool:
        """Whether the same happened again."""
        return (self.kind, self.message, self.shard) == (other.kind, other.message, other.shard)

    def with_later(self, other: "ErrorNote") -> "ErrorNote":
        """Both, of which `other` came later."""
        return msgspec.structs.replace(self, last_us=other.last_us, count=self.count + other.count)


class RunNote(msgspec.Struct, frozen=True):
    """One run: who, from when, and to when with which exit code and error; it has no end while it lives, or when it
    was killed. Times are microseconds since 1970."""

    owner: str
    started_us: int
    ended_us: int | None = None
    exit_code: int | None = None
    error: ErrorNote | None = None


class Entries(msgspec.Struct, frozen=True):
    """All entries of a feed. `alive_us`: the newest sign of life of a run; `errors`: the newest last."""

    run: RunNote | None = None
    alive_us: int | None = None
    errors: tuple[ErrorNote, ...] = ()


class Journal:
    """Writes the entries of a feed for the holder of the lease. Methods raise LeaseLost and StateError."""

    def __init__(self, store: Store, fence: int) -> None:
        self._store = store
        self._fence = fence

    def begin(self, owner: str) -> None:
        """A run begins."""
        now = now_us()
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(connection, self._store.feed, _RUN, RunNote(owner, now))
            _put(connection, self._store.feed, _ALIVE, now)

    def end(self, exit_code: int, error: ErrorNote | None) -> None:
        """The run ends."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            run = _get(connection, self._store, _RUN, RunNote)
            ended = msgspec.structs.replace(
                run or RunNote("", now_us()), ended_us=now_us(), exit_code=exit_code, error=error
            )
            _put(connection, self._store.feed, _RUN, ended)

    def add(self, errors: tuple[ErrorNote, ...]) -> None:
        """Errors that were met, in the order of their last time: equal ones are counted, the oldest forgotten."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            known = _get(connection, self._store, _ERRORS, tuple[ErrorNote, ...]) or ()
            _put(connection, self._store.feed, _ERRORS, with_errors(known, errors))


def with_errors(known: tuple[ErrorNote, ...], more: tuple[ErrorNote, ...]) -> tuple[ErrorNote, ...]:
    """The newest KEEP_ERRORS of both, the newest last."""
    kept = list(known)
    for error in more:
        same = next((one for one in kept if one.equals(error)), None)
        if same is not None:
            kept.remove(same)
        kept.append(error if same is None else same.with_later(error))
    return tuple(kept[-KEEP_ERRORS:])


def exit_code_of(error: BaseException) -> int:
    """What the command returns that ends by an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return error.exit_code if isinstance(error, CatchmentError) else CatchmentError.exit_code


def give_sign_of_life(connection: Connection, feed: str) -> None:
    """Write that the holder of the lease lives, in a transaction that has the lease's row."""
    _put(connection, feed, _ALIVE, now_us())


def entries(connection: Connection, store: Store) -> Entries:
    """The entries that a transaction sees; raises StateError for one that cannot be read."""
    if not inspect(connection).has_table(journal_table.name):
        return Entries()
    return Entries(
        _get(connection, store, _RUN, RunNote),
        _get(connection, store, _ALIVE, int),
        _get(connection, store, _ERRORS, tuple[ErrorNote, ...]) or (),
    )


def now_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def _put(connection: Connection, feed: str, kind: str, record: object) -> None:
    connection.execute(delete(journal_table).filter_by(feed=feed, kind=kind))
    connection.execute(insert(journal_table).values(feed=feed, kind=kind, record=msgspec.json.encode(record)))


def _get(connection: Connection, store: Store, kind: str, type_: type[T]) -> T | None:
    record = connection.scalar(select(journal_table.c.record).filter_by(feed=store.feed, kind=kind))
    if record is None:
        return None
    try:
        return msgspec.json.decode(record, type=type_)
    except msgspec.DecodeError as fault:
        raise StateError(
            f"state store {store.database}: the journal of feed {store.feed} cannot be read ({fault}); move the store "
            "away, it is rebuilt from the lake"
        ) from fault
