"""How far a verification has come, kept in the state store until it is complete. Whoever may open that may write it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec
from sqlalchemy import update

from catchment.model.choice import Portion
from catchment.model.chunk import Chunk
from catchment.model.sample import Sample
from catchment.model.shard import Copy
from catchment.model.table import TableId
from catchment.state.database import Database, journal_table, lease_table
from catchment.state.decoders import decoded
from catchment.state.statements import DELETE_ENTRY, ENTRY, INSERT_ENTRY
from catchment.state.store import Store

BY_COMMAND, BY_RUN = "verify", "verify by run"
_lease = lease_table.c


class ScopeTable(msgspec.Struct, frozen=True):
    """A table that is compared, and what makes its chunks those of another one."""

    table: TableId
    key: tuple[str, ...]
    generation: int


class Scope(msgspec.Struct, frozen=True):
    """What is compared."""

    tables: tuple[ScopeTable, ...]
    sample: Sample
    portion: Portion | None = None


class TableFound(msgspec.Struct, frozen=True):
    """What was found of a table so far: rows compared, keys that differ, the first of them, and `unproven` keys as the
    verdict has them."""

    table: TableId
    rows: int
    missing: int
    extra: int
    changed: int
    named: tuple[str, ...]
    unproven: int = 0


class Stood(msgspec.Struct, frozen=True):
    """Where a verification stood. `compared`: how far each shard's tables are compared. `differing`, `parts`: as the
    verdict has them."""

    scope: Scope
    epoch: int
    compared: dict[str, tuple[Copy, ...]]
    found: tuple[TableFound, ...]
    differing: tuple[tuple[Chunk, ...], ...]
    parts: tuple[int, int]


class Verifications:
    """The verification of a feed that is under way, or was given up. Of two at once the later word counts: each is
    right for itself. `kind`: those of the command and those of runs are kept apart."""

    def __init__(self, store: Store, kind: str = BY_COMMAND) -> None:
        self._store = store
        self._kind = kind

    def load(self, scope: Scope) -> Stood | None:
        """Where one of the same scope stood. None as well for one that another version has written."""
        with self._store.database.snapshot() as connection:
            record = connection.scalar(ENTRY, {"of": self._store.feed, "what": self._kind})
        if record is None:
            return None
        try:
            found = decoded(record, Stood)
        except msgspec.DecodeError:
            return None
        return found if found.scope == scope else None

    def compares(self, table: TableId) -> bool:
        """Whether one that is under way compares a table, as far as this version can read it."""
        with self._store.database.snapshot() as connection:
            record = connection.scalar(ENTRY, {"of": self._store.feed, "what": self._kind})
        try:
            return record is not None and any(
                one.table == table for one in decoded(record, Stood).scope.tables
            )
        except msgspec.DecodeError:
            return True

    def save(self, stood: Stood) -> None:
        """Keep where it stands. Raises StateError."""
        self._replace(msgspec.json.encode(stood))

    def clear(self) -> None:
        """It is complete. Raises StateError."""
        self._replace(None)

    def _replace(self, record: bytes | None) -> None:
        of = {"of": self._store.feed, "what": self._kind}
        with self._store.database.transaction() as connection:
            # Two who verify write one after the other.
            mine = update(lease_table).where(_lease.feed == self._store.feed)
            connection.execute(mine.values(fence=_lease.fence))
            connection.execute(DELETE_ENTRY, of)
            if record is not None:
                row = {"feed": self._store.feed, "kind": self._kind, "record": record}
                connection.execute(INSERT_ENTRY, row)


def forget_keys(store: Store, table: TableId) -> None:
    """Leave no key of a table's rows in what verifications that are under way have found: those that compare it begin
    again. Raises StateError."""
    for kind in (BY_COMMAND, BY_RUN):
        mine = Verifications(store, kind)
        if mine.compares(table):
            mine.clear()


@contextmanager
def verifications(url: str, feed: str) -> Iterator[Verifications | None]:
    """Those of a feed; None where it has no state store. Raises StateError."""
    database = Database(url)
    try:
        made = database.is_made() and journal_table.name in database.tables()
    finally:
        database.close()
    if not made:
        yield None
        return
    with closing(Store.open(url, feed, create=False)) as store:
        yield Verifications(store)
