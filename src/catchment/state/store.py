"""The three durable records of an epoch: plan, manifest and commit (DESIGN 2).

Every write carries the fence number of the writer's lease and is refused in the same transaction when another
runner has taken over. Records are JSON, so that people can read them.
"""

import hashlib
from typing import Self, TypeVar

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from catchment.model.epoch import Commit, Manifest, Plan, epoch_text
from catchment.model.errors import LeaseLost, StateError
from catchment.state.database import Database, lease_table, record_table
from catchment.state.decoders import decoded

KEEP_COMMITS = 100
_PLAN, _MANIFEST, _COMMIT = "plan", "manifest", "commit"

Record = Plan | Manifest | Commit
R = TypeVar("R", Plan, Manifest, Commit)


class Store:
    """Records of one feed. Methods raise StateError; those that write raise LeaseLost when `fence` is
    outdated."""

    def __init__(self, database: Database, feed: str) -> None:
        self.database = database
        self.feed = feed

    @classmethod
    def open(cls, url: str, feed: str, *, create: bool = True) -> Self:
        """The store at a SQLAlchemy URL; without `create`, StateError when there is none. Raises ConfigError for
        options in the URL that cannot be used."""
        database = Database(url)
        database.open(create=create)
        return cls(database, feed)

    def close(self) -> None:
        """Give up the connections."""
        self.database.close()

    def put_plan(self, plan: Plan, fence: int) -> None:
        """Write a plan, or amend it: it takes the place of any other without a manifest. A plan at or before the
        newest manifest is refused: what was read stays read."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            newest = self._newest_epoch(connection, _MANIFEST)
            if newest is not None and plan.epoch <= newest:
                raise StateError(
                    f"plan of epoch {epoch_text(plan.epoch)} comes after the manifest of {epoch_text(newest)}"
                )
            # A plan that came to nothing: a cut that was missed, or one whose log held nothing new.
            open_plans = delete(record_table).filter_by(feed=self.feed, kind=_PLAN)
            connection.execute(open_plans.where(record_table.c.epoch > (newest or 0)))
            self._put(connection, _PLAN, plan)

    def put_manifest(self, manifest: Manifest, fence: int) -> None:
        """Write a manifest, once: repeating it is harmless, another one for the same epoch is refused."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            known = self._get(connection, _MANIFEST, Manifest, manifest.epoch)
            if known is not None and known.digest() != manifest.digest():
                raise StateError(
                    f"epoch {epoch_text(manifest.epoch)} of feed {self.feed} has another manifest already"
                )
            self._put(connection, _MANIFEST, manifest)

    def put_commit(self, commit: Commit, fence: int, *, keep: int = KEEP_COMMITS) -> None:
        """Write a commit of a manifest in the store, and forget what is older than the newest `keep`
        commits."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            if not self._has_manifest(connection, commit):
                raise StateError(
                    f"epoch {epoch_text(commit.epoch)} of feed {self.feed} is committed without its manifest"
                )
            self._put(connection, _COMMIT, commit)
            self._trim(connection, keep)

    def take_up(self, manifest: Manifest, commit: Commit, fence: int) -> None:
        """Take up the newest epoch of a lake that is ahead. Its manifest has no deltas (see EpochRow), so that
        `commit.digest` is not its own."""
        with self.database.transaction() as connection:
            self.guard(connection, fence)
            self._put(connection, _MANIFEST, manifest)
            self._put(connection, _COMMIT, commit)
            self._trim(connection, KEEP_COMMITS)

    def newest(self) -> tuple[Plan | None, Manifest | None, Commit | None]:
        """The newest record of each kind, as of one moment."""
        with self.database.snapshot() as connection:
            return self.newest_in(connection)

    def newest_in(self, connection: Connection) -> tuple[Plan | None, Manifest | None, Commit | None]:
        """The newest record of each kind that a transaction sees."""
        return (
            self._newest(connection, _PLAN, Plan),
            self._newest(connection, _MANIFEST, Manifest),
            self._newest(connection, _COMMIT, Commit),
        )

    def manifest(self, epoch: int) -> Manifest | None:
        """The manifest of an epoch, None when there is none (any more)."""
        with self.database.transaction() as connection:
            return self.manifest_in(connection, epoch)

    def manifest_in(self, connection: Connection, epoch: int) -> Manifest | None:
        """The manifest of an epoch that a transaction sees."""
        return self._get(connection, _MANIFEST, Manifest, epoch)

    def commit(self, epoch: int) -> Commit | None:
        """The commit of an epoch, None when there is none (any more)."""
        with self.database.transaction() as connection:
            return self._get(connection, _COMMIT, Commit, epoch)

    def guard(self, connection: Connection, fence: int) -> None:
        """Lock the lease's row until the transaction ends; raises LeaseLost when it is another's. First of its
        statements: SQLite takes its lock here."""
        lease = lease_table.c
        held = update(lease_table).where(lease.feed == self.feed, lease.fence == fence).values(fence=fence)
        if connection.execute(held).rowcount != 1:
            raise LeaseLost(
                f"feed {self.feed}: another runner took over (our fence was {fence}); this one must stop"
            )

    def _put(self, connection: Connection, kind: str, record: Record) -> None:
        key = {"feed": self.feed, "kind": kind, "epoch": record.epoch}
        connection.execute(delete(record_table).filter_by(**key))
        # In the order of `Manifest.digest`, which is then that of the bytes.
        document = msgspec.json.encode(record, order="deterministic")
        connection.execute(insert(record_table).values(**key, record=document))

    def _has_manifest(self, connection: Connection, commit: Commit) -> bool:
        """Whether the manifest of a commit is in the store; one that an older version wrote may be in another order."""
        query = select(record_table.c.record).filter_by(feed=self.feed, kind=_MANIFEST, epoch=commit.epoch)
        document = connection.scalar(query)
        if document is not None and hashlib.sha256(document).hexdigest() == commit.digest:
            return True
        manifest = self._decoded(document, _MANIFEST, Manifest)
        return manifest is not None and manifest.digest() == commit.digest

    def _get(self, connection: Connection, kind: str, type_: type[R], epoch: int) -> R | None:
        query = select(record_table.c.record).filter_by(feed=self.feed, kind=kind, epoch=epoch)
        return self._decoded(connection.scalar(query), kind, type_)

    def _newest(self, connection: Connection, kind: str, type_: type[R]) -> R | None:
        query = select(record_table.c.record).filter_by(feed=self.feed, kind=kind)
        return self._decoded(
            connection.scalar(query.order_by(record_table.c.epoch.desc()).limit(1)), kind, type_
        )

    def _newest_epoch(self, connection: Connection, kind: str) -> int | None:
        epochs = select(record_table.c.epoch).filter_by(feed=self.feed, kind=kind)
        return connection.scalar(epochs.order_by(record_table.c.epoch.desc()).limit(1))

    def _decoded(self, record: bytes | None, kind: str, type_: type[R]) -> R | None:
        if record is None:
            return None
        try:
            return decoded(record, type_)
        except msgspec.DecodeError as fault:
            raise StateError(
                f"state store {self.database}: a {kind} of feed {self.feed} cannot be read ({fault}); "
                "move the store away, it is rebuilt from the lake"
            ) from fault

    def _trim(self, connection: Connection, keep: int) -> None:
        mine = record_table.c.feed == self.feed
        commits = select(record_table.c.epoch).where(mine, record_table.c.kind == _COMMIT)
        oldest_kept = connection.scalar(
            commits.order_by(record_table.c.epoch.desc()).offset(keep - 1).limit(1)
        )
        if oldest_kept is not None:
            connection.execute(delete(record_table).where(mine, record_table.c.epoch < oldest_kept))
