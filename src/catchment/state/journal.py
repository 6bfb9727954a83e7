"""What a feed's runs leave in the state store beside its epochs: how the newest one ended, what troubled it, and how
far it came.

Records are JSON, each replaced whole. Only the holder of the lease writes; a store without the table has no entries.
"""

from typing import TypeVar

import msgspec
from sqlalchemy import Connection, inspect

from catchment import world
from catchment.model.errors import StateError
from catchment.model.progress import Progress
from catchment.model.strategy import Strategy
from catchment.model.throttle import Throttled
from catchment.model.verification import Verification
from catchment.model.version import __version__
from catchment.state.database import journal_table
from catchment.state.decoders import decoded
from catchment.state.notes import Entries, ErrorNote, NotCarried, RunNote, Setting, Trouble, with_errors
from catchment.state.patience import Patience, patient
from catchment.state.statements import DELETE_ENTRY, ENTRY, INSERT_ENTRY
from catchment.state.store import Store

_RUN, _ALIVE, _ERRORS, _TROUBLES, _UNCARRIED = "run", "alive", "errors", "troubles", "uncarried"
_THROTTLED, _SETTINGS = "throttled", "settings"
_PROGRESS, _VERIFICATION = "progress", "verification"

T = TypeVar("T")


class Journal:
    """Writes the entries of a feed for the holder of the lease. Methods raise LeaseLost and StateError.

    `strategy`: by which its run copies rows.
    """

    def __init__(self, store: Store, fence: int, strategy: Strategy = Strategy.REWIND) -> None:
        self._store = store
        self._fence = fence
        self._strategy = strategy

    @property
    def fence(self) -> int:
        """That of the run which writes."""
        return self._fence

    @property
    def patience(self) -> Patience | None:
        """How long what the loop reads and writes waits for the store; what others write does not."""
        return self._store.patience

    def begin(self, owner: str) -> None:
        """A run begins."""
        now = world.now_us()
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(
                connection,
                self._store.feed,
                _RUN,
                RunNote(owner, now, version=__version__, strategy=self._strategy),
            )
            _put(connection, self._store.feed, _ALIVE, now)
            _put(connection, self._store.feed, _TROUBLES, ())
            _put(connection, self._store.feed, _THROTTLED, ())
            _put(connection, self._store.feed, _PROGRESS, None)

    def end(self, exit_code: int, error: ErrorNote | None) -> None:
        """The run ends."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            run = _get(connection, self._store, _RUN, RunNote)
            ended = msgspec.structs.replace(
                run or RunNote("", world.now_us()), ended_us=world.now_us(), exit_code=exit_code, error=error
            )
            _put(connection, self._store.feed, _RUN, ended)

    def put_troubles(self, troubles: tuple[Trouble, ...]) -> None:
        """What is in trouble now, in place of what was."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(connection, self._store.feed, _TROUBLES, troubles)

    def put_throttled(self, shards: tuple[Throttled, ...]) -> None:
        """The shards of which no rows are copied now for the source's sake, in place of those that were."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(connection, self._store.feed, _THROTTLED, shards)

    @patient
    def settings(self) -> tuple[Setting, ...]:
        """The settings of the copy that were changed and are in force."""
        with self._store.database.transaction() as connection:
            return _get(connection, self._store, _SETTINGS, tuple[Setting, ...]) or ()

    @patient
    def put_settings(self, settings: tuple[Setting, ...]) -> None:
        """The settings that are in force now, in place of those that were."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(connection, self._store.feed, _SETTINGS, settings)

    def put_progress(self, progress: Progress) -> None:
        """How far the run has come, in place of what was."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(connection, self._store.feed, _PROGRESS, progress)

    @patient
    def verification(self) -> Verification:
        """What is known of the comparisons that runs make in the background."""
        with self._store.database.transaction() as connection:
            return _get(connection, self._store, _VERIFICATION, Verification) or Verification()

    def put_verification(self, known: Verification) -> None:
        """What is known of them now, in place of what was."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(connection, self._store.feed, _VERIFICATION, known)

    @patient
    def uncarried(self) -> tuple[NotCarried, ...]:
        """The tables that were not carried when the set was written last."""
        with self._store.database.transaction() as connection:
            return _get(connection, self._store, _UNCARRIED, tuple[NotCarried, ...]) or ()

    @patient
    def put_uncarried(self, tables: tuple[NotCarried, ...]) -> None:
        """The tables that are not carried now, in place of those that were not."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            _put(connection, self._store.feed, _UNCARRIED, tables)

    def add(self, errors: tuple[ErrorNote, ...]) -> None:
        """Errors that were met, in the order of their last time: equal ones are counted, the oldest forgotten."""
        with self._store.database.transaction() as connection:
            self._store.guard(connection, self._fence)
            known = _get(connection, self._store, _ERRORS, tuple[ErrorNote, ...]) or ()
            _put(connection, self._store.feed, _ERRORS, with_errors(known, errors))


def give_sign_of_life(connection: Connection, feed: str) -> None:
    """Write that the holder of the lease lives, in a transaction that has the lease's row."""
    _put(connection, feed, _ALIVE, world.now_us())


def entries(connection: Connection, store: Store) -> Entries:
    """The entries that a transaction sees; raises StateError for one that cannot be read."""
    if not inspect(connection).has_table(journal_table.name):
        return Entries()
    return Entries(
        _get(connection, store, _RUN, RunNote),
        _get(connection, store, _ALIVE, int),
        _get(connection, store, _ERRORS, tuple[ErrorNote, ...]) or (),
        _get(connection, store, _TROUBLES, tuple[Trouble, ...]) or (),
        _get(connection, store, _UNCARRIED, tuple[NotCarried, ...]) or (),
        _get(connection, store, _THROTTLED, tuple[Throttled, ...]) or (),
        _get(connection, store, _SETTINGS, tuple[Setting, ...]) or (),
        _get(connection, store, _PROGRESS, Progress | None),  # type: ignore[arg-type]
        _get(connection, store, _VERIFICATION, Verification) or Verification(),
    )


def _put(connection: Connection, feed: str, kind: str, record: object) -> None:
    connection.execute(DELETE_ENTRY, {"of": feed, "what": kind})
    connection.execute(INSERT_ENTRY, {"feed": feed, "kind": kind, "record": msgspec.json.encode(record)})


def _get(connection: Connection, store: Store, kind: str, type_: type[T]) -> T | None:
    record = connection.scalar(ENTRY, {"of": store.feed, "what": kind})
    if record is None:
        return None
    try:
        return decoded(record, type_)
    except msgspec.DecodeError as fault:
        raise StateError(
            f"state store {store.database}: the journal of feed {store.feed} cannot be read ({fault}); move the store "
            "away, it is rebuilt from the lake"
        ) from fault
