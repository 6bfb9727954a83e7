"""The three durable records of an epoch: plan, manifest and commit (DESIGN 2).

Every write carries the fence number of the writer's lease and is refused in the same transaction when another
runner has taken over. Most manifests and commits say what has changed since a whole one (model/records.py). A run
begins with a whole one, and the store forgets none that a kept record builds on.
"""

from typing import Self, TypeVar

from sqlalchemy import Connection

from catchment.model.epoch import Commit, Manifest, Plan
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import LeaseLost, StateError
from catchment.model.records import (
    Base,
    OfLater,
    Unreadable,
    base_of,
    digest,
    encoded,
    link_of,
    names_of,
    plan_of,
    value_of,
    whole,
)
from catchment.state import statements
from catchment.state.database import Database, mark_layout
from catchment.state.patience import Patience, patient

KEEP_COMMITS = 100
_PLAN, _MANIFEST, _COMMIT = "plan", "manifest", "commit"

R = TypeVar("R", Manifest, Commit)


class Store:
    """Records of one feed. Methods raise StateError; those that write raise LeaseLost when `fence` is
    outdated. With `patience` they wait while the store is away. One object serves one run: it knows the whole records
    that the run has written."""

    def __init__(self, database: Database, feed: str, patience: Patience | None = None) -> None:
        self.database = database
        self.feed = feed
        self.patience = patience
        self._manifests: Base[Manifest] | None = None
        self._commits: Base[Commit] | None = None
        self._put_last: tuple[int, str] | None = None  # epoch and digest of a manifest

    @classmethod
    def open(cls, url: str, feed: str, *, create: bool = True, patience: Patience | None = None) -> Self:
        """The store at a SQLAlchemy URL; without `create`, StateError when there is none. Opening waits for nothing.
        Raises ConfigError for options in the URL that cannot be used."""
        database = Database(url)
        database.open(create=create)
        return cls(database, feed, patience)

    def close(self) -> None:
        """Give up the connections."""
        self.database.close()

    @patient
    def put_plan(self, plan: Plan, fence: int) -> None:
        """Write a plan, or amend it: it takes the place of any other without a manifest. A plan at or before the
        newest manifest is refused: what was read stays read."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            newest = self._epoch_before(connection, _MANIFEST, passed=0)
            if newest is not None and plan.epoch <= newest:
                raise StateError(
                    f"plan of epoch {epoch_text(plan.epoch)} comes after the manifest of {epoch_text(newest)}"
                )
            # A plan that came to nothing: a cut that was missed, or one whose log held nothing new.
            later = {"of": self.feed, "what": _PLAN, "at": newest or 0}
            connection.execute(statements.DELETE_LATER, later)
            mark_layout(connection)
            self._insert(connection, _PLAN, plan.epoch, whole(plan))

    @patient
    def put_manifest(self, manifest: Manifest, fence: int) -> str:
        """Write a manifest, once: repeating it is harmless, another one for the same epoch is refused. The digest of
        its record."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            known = self._record(connection, _MANIFEST, manifest.epoch)
            if known is not None:
                if self._value(connection, _MANIFEST, Manifest, known) != manifest:
                    raise StateError(
                        f"epoch {epoch_text(manifest.epoch)} of feed {self.feed} has another manifest already"
                    )
                return digest(known)
            known_base = self._there(connection, _MANIFEST, self._manifests)
            if known_base is None:  # else the store was marked with that one
                mark_layout(connection)
            record, base = encoded(manifest, known_base)
            self._insert(connection, _MANIFEST, manifest.epoch, record)
        self._manifests, self._put_last = base, (manifest.epoch, digest(record))
        return self._put_last[1]

    @patient
    def put_commit(self, commit: Commit, fence: int, *, keep: int = KEEP_COMMITS) -> None:
        """Write a commit of a manifest in the store, and forget what is older than the newest `keep`
        commits."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            if not self._has_manifest(connection, commit):
                raise StateError(
                    f"epoch {epoch_text(commit.epoch)} of feed {self.feed} is committed without its manifest"
                )
            known_base = self._there(connection, _COMMIT, self._commits)
            if known_base is None:
                mark_layout(connection)
            record, base = encoded(commit, known_base)
            self._put(connection, _COMMIT, commit.epoch, record)
            self._trim(connection, keep)
        self._commits = base

    @patient
    def take_up(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """Take up the newest epoch of a lake that is ahead. Its manifest has no deltas (see EpochRow), so that
        `commit.digest` is not its own."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            mark_layout(connection)
            self._put(connection, _MANIFEST, manifest.epoch, whole(manifest))
            self._put(connection, _COMMIT, commit.epoch, whole(commit))
            self._trim(connection, KEEP_COMMITS)
        self._manifests = self._commits = None

    @patient
    def newest(self) -> tuple[Plan | None, Manifest | None, Commit | None]:
        """The newest record of each kind, as of one moment."""
        with self.database.snapshot() as connection:
            return self.newest_in(connection)

    def newest_in(self, connection: Connection) -> tuple[Plan | None, Manifest | None, Commit | None]:
        """The newest record of each kind that a transaction sees."""
        plan = self._newest(connection, _PLAN)
        return (
            None if plan is None else self._plan(plan),
            self._value(connection, _MANIFEST, Manifest, self._newest(connection, _MANIFEST)),
            self._value(connection, _COMMIT, Commit, self._newest(connection, _COMMIT)),
        )

    @patient
    def manifest(self, epoch: int) -> Manifest | None:
        """The manifest of an epoch, None when there is none (any more)."""
        with self.database.snapshot() as connection:
            return self.manifest_in(connection, epoch)

    def manifest_in(self, connection: Connection, epoch: int) -> Manifest | None:
        """The manifest of an epoch that a transaction sees."""
        return self._value(connection, _MANIFEST, Manifest, self._record(connection, _MANIFEST, epoch))

    @patient
    def digest(self, epoch: int) -> str:
        """The digest of the record of an epoch's manifest; raises StateError when there is none (any more).

        Of the manifest that was put last it is known. `put_commit` sees whether the store still has that one.
        """
        if self._put_last is not None and self._put_last[0] == epoch:
            return self._put_last[1]
        with self.database.snapshot() as connection:
            record = self._record(connection, _MANIFEST, epoch)
        if record is None:
            raise StateError(
                f"state store {self.database}: the manifest of epoch {epoch_text(epoch)} of feed {self.feed} is gone; "
                "was the store replaced while the feed ran? run the same command again"
            )
        return digest(record)

    @patient
    def digests(self, epoch: int) -> frozenset[str]:
        """The digests by which a commit may name the manifest of an epoch; empty when there is none (any more).

        More than one where a version before records had one of their own wrote it: it named the content.
        """
        with self.database.snapshot() as connection:
            record = self._record(connection, _MANIFEST, epoch)
            return frozenset() if record is None else self._names(record)

    @patient
    def commit(self, epoch: int) -> Commit | None:
        """The commit of an epoch, None when there is none (any more)."""
        with self.database.snapshot() as connection:
            return self._value(connection, _COMMIT, Commit, self._record(connection, _COMMIT, epoch))

    def guard(self, connection: Connection, fence: int) -> None:
        """Lock the lease's row until the transaction ends; raises LeaseLost when it is another's. First of its
        statements: SQLite takes its lock here."""
        if connection.execute(statements.GUARD, {"of": self.feed, "held": fence}).rowcount != 1:
            raise LeaseLost(
                f"feed {self.feed}: another runner took over (our fence was {fence}); this one must stop"
            )

    def _put(self, connection: Connection, kind: str, epoch: int, record: bytes) -> None:
        """Write a record, in the place of another one of the epoch if there is one."""
        connection.execute(statements.DELETE_RECORD, {"of": self.feed, "what": kind, "at": epoch})
        self._insert(connection, kind, epoch, record)

    def _insert(self, connection: Connection, kind: str, epoch: int, record: bytes) -> None:
        """Write a record of an epoch that has none of its kind."""
        row = {"feed": self.feed, "kind": kind, "epoch": epoch, "record": record}
        connection.execute(statements.INSERT_RECORD, row)

    def _there(self, connection: Connection, kind: str, base: Base[R] | None) -> Base[R] | None:
        """The base, if the store has its record: an operator may have put an older store in its place."""
        if base is None:
            return None
        # The record is not read, since it is the largest of all: 3 MB with 400 tables.
        found = connection.scalar(
            statements.HAS_RECORD, {"of": self.feed, "what": kind, "at": base.value.epoch}
        )
        return None if found is None else base

    def _has_manifest(self, connection: Connection, commit: Commit) -> bool:
        """Whether the manifest of a commit is in the store."""
        record = self._record(connection, _MANIFEST, commit.epoch)
        if record is None:
            return False
        return digest(record) == commit.digest or commit.digest in self._names(record)

    def _names(self, record: bytes) -> frozenset[str]:
        """The digest of a manifest's record, and that of its content where a version without them may have used it."""
        try:
            return names_of(record)
        except (Unreadable, OfLater) as fault:
            raise self._fault(_MANIFEST, fault) from fault

    def _record(self, connection: Connection, kind: str, epoch: int) -> bytes | None:
        return connection.scalar(statements.RECORD, {"of": self.feed, "what": kind, "at": epoch})

    def _newest(self, connection: Connection, kind: str) -> bytes | None:
        return connection.scalar(statements.NEWEST_RECORD, {"of": self.feed, "what": kind})

    def _epoch_before(self, connection: Connection, kind: str, passed: int) -> int | None:
        """The epoch of the newest record when so many are passed over."""
        return connection.scalar(statements.EPOCH_BEFORE, {"of": self.feed, "what": kind, "passed": passed})

    def _value(self, connection: Connection, kind: str, type_: type[R], record: bytes | None) -> R | None:
        if record is None:
            return None
        try:
            link = link_of(record)
            found = None if link is None else self._record(connection, kind, link.epoch)
            return value_of(record, None if found is None else base_of(found, type_), type_)
        except (Unreadable, OfLater) as fault:
            raise self._fault(kind, fault) from fault

    def _plan(self, record: bytes) -> Plan:
        try:
            return plan_of(record)
        except (Unreadable, OfLater) as fault:
            raise self._fault(_PLAN, fault) from fault

    def _fault(self, kind: str, fault: ValueError) -> StateError:
        said = f"state store {self.database}: a {kind} of feed {self.feed} {fault}"
        if isinstance(fault, OfLater):
            return StateError(said)
        return StateError(f"{said}; move the store away, it is rebuilt from the lake")

    def _trim(self, connection: Connection, keep: int) -> None:
        """Forget what is older than the newest `keep` commits and the whole records that those build on."""
        oldest_kept = self._epoch_before(connection, _COMMIT, passed=keep - 1)
        if oldest_kept is None:
            return
        needed = [oldest_kept]
        for kind in (_MANIFEST, _COMMIT):
            record = self._record(connection, kind, oldest_kept)
            try:
                link = None if record is None else link_of(record)
            except (Unreadable, OfLater) as fault:
                raise self._fault(kind, fault) from fault
            if link is not None:
                needed.append(link.epoch)
        connection.execute(statements.DELETE_EARLIER, {"of": self.feed, "at": min(needed)})
