"""Apply an epoch to the lake: one commit per touched table, exactly once (DESIGN 5)."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from deltalake import DeltaTable, Transaction
from deltalake.transaction import AddAction

from catchment import world
from catchment.model.epoch import DataFile, Manifest, TableDelta, epoch_text
from catchment.model.errors import SinkError
from catchment.model.table import TableId
from catchment.sink.delta.commit import (
    LakeTable,
    check_fence,
    check_owner,
    commit_properties,
    create_table,
    gone,
    mark_layout,
    missing_columns,
    sync_version,
)
from catchment.sink.delta.layout import PART, delta_schema, epoch_app, table_dir, tail_dir

EPOCH_NOTE = "catchment.epoch"
_THREADS = 8
_VERSION_AGE_S = 60.0


class DeltaSink:
    """The lake of one feed, for its one writer. Applies one epoch at a time.

    `after_table` is called after each table's commit of an epoch: the place for a crash between two tables.
    """

    def __init__(self, root: str | Path, feed: str, after_table: Callable[[], None] = lambda: None) -> None:
        self.root = Path(root)
        self.feed = feed
        self._after_table = after_table
        self._tables: dict[TableId, LakeTable] = {}
        self._versions: dict[TableId, tuple[int, float]] = {}  # as of our last epoch, and when we knew

    def apply(self, delta: TableDelta, epoch: int, fence: int, *, first: bool = True) -> int:
        """Commit a table's part of an epoch; the version that holds it.

        A replay of an applied epoch commits nothing. `first`: this may be the table's first epoch, which
        creates it. Raises LeaseLost when a later runner wrote the table, SinkConflict when other writers won every
        attempt. Raises SinkError when the lake refuses, or the table is another feed's or is gone.
        """
        name, directory = delta.shape.table, tail_dir(self.root, delta.shape.table)

        def attempt(table: DeltaTable) -> int | None:
            check_fence(table, self.feed, fence, str(name))
            check_owner(table, self.feed, str(name))
            applied = table.transaction_version(epoch_app(self.feed, name))
            if applied is not None and applied >= epoch:
                held = version_of_epoch(table, name, epoch, applied)
                sync_version(directory, held)  # its runner may have died before it did
                return held
            if self._widened(table, delta, fence):
                return None
            return self._commit(table, delta, epoch, fence)

        def create() -> DeltaTable:
            if not first or name in self._versions:
                gone(str(name), directory)
            return create_table(directory, delta_schema(delta.shape), [PART], self.feed)

        version = self._table(name).commit(attempt, create)
        self._versions[name] = (version, world.steady_seconds())
        return version

    def apply_epoch(self, manifest: Manifest, fence: int) -> dict[str, int]:
        """Apply all deltas of a manifest, in threads; the version of every table of its shapes.

        May be repeated after a crash between two tables: tables that have the epoch are left alone. The
        version of an untouched table is at most a minute old, to lie within the readers' window after a settle.
        A feed's first epoch creates its tables, and is refused before any commit where rows stand already.
        """
        first = manifest.previous == 0
        if first:
            self.must_be_free(manifest)
        with world.pool(_THREADS) as pool:
            work = {
                str(d.shape.table): pool.submit(self._apply_one, d, manifest.epoch, fence, first)
                for d in manifest.deltas
            }
        versions = {name: future.result() for name, future in work.items()}
        for shape in manifest.shapes:
            if str(shape.table) not in versions:
                versions[str(shape.table)] = self._recent_version(shape.table)
        return versions

    def must_be_free(self, manifest: Manifest) -> None:
        """Raise SinkError when a table that the feed's first epoch would create holds something already."""
        with world.pool(_THREADS) as pool:
            list(pool.map(lambda d: self._must_be_free(d.shape.table, manifest.epoch), manifest.deltas))

    def take_over(self, tables: Iterable[TableId], fence: int) -> None:
        """Carry the fence of a new runner in every table that exists, so that an older one cannot commit to any.

        Without it, a frozen runner could still apply its epoch to tables that the new one has not written yet.
        Raises LeaseLost when a later runner wrote a table, SinkError when the lake refuses.
        """
        with world.pool(_THREADS) as pool:
            list(pool.map(lambda name: self._take_over_one(name, fence), tables))

    def _take_over_one(self, name: TableId, fence: int) -> None:
        def attempt(table: DeltaTable) -> bool | None:
            check_fence(table, self.feed, fence, str(name))
            if mark_layout(table, tail_dir(self.root, name), self.feed, fence):
                return None
            version: int = table.version() + 1
            properties = commit_properties(self.feed, fence)
            table.create_write_transaction([], "append", table.schema(), [PART], commit_properties=properties)
            sync_version(tail_dir(self.root, name), version)
            return True

        if self._table(name).refreshed() is not None:
            self._table(name).commit(attempt, lambda: gone(str(name), tail_dir(self.root, name)))

    def _must_be_free(self, name: TableId, epoch: int) -> None:
        plain = table_dir(self.root, name)
        if (plain / "_delta_log").exists():
            raise self._stands(name, plain)
        table = self._table(name).refreshed()
        if table is None:
            return
        check_owner(table, self.feed, str(name))
        carried = table.transaction_version(epoch_app(self.feed, name))
        if carried != epoch and (carried is not None or table.file_uris()):
            raise self._stands(name, tail_dir(self.root, name))

    def _stands(self, name: TableId, where: Path) -> SinkError:
        return SinkError(
            f"{name}: feed {self.feed} begins, but there is a lake table at {where} already, of "
            "another program, or of this feed whose state store and _catchment directory were lost; put those "
            "back, give the feed another sink.path, or remove that directory to copy everything again"
        )

    def _apply_one(self, delta: TableDelta, epoch: int, fence: int, first: bool) -> int:
        version = self.apply(delta, epoch, fence, first=first)
        self._after_table()
        return version

    def _table(self, name: TableId) -> LakeTable:
        return self._tables.setdefault(name, LakeTable(str(name), tail_dir(self.root, name)))

    def _widened(self, table: DeltaTable, delta: TableDelta, fence: int) -> bool:
        """Add columns that the shape has gained, in a commit of their own: the rows stay as they are.

        delta-rs ignores a wider schema in an append.
        """
        added = missing_columns(table, delta.shape)
        if added is None:
            return False
        version: int = table.version() + 1
        table.alter.add_columns(list(added.fields), commit_properties=commit_properties(self.feed, fence))
        sync_version(tail_dir(self.root, delta.shape.table), version)
        return True

    def _commit(self, table: DeltaTable, delta: TableDelta, epoch: int, fence: int) -> int:
        name = delta.shape.table
        version: int = table.version() + 1
        transaction = Transaction(epoch_app(self.feed, name), epoch)
        table.create_write_transaction(
            [add_action(file) for file in delta.files if file.rows],
            "append",
            delta_schema(delta.shape),
            [PART],
            commit_properties=commit_properties(self.feed, fence, transaction, **{EPOCH_NOTE: str(epoch)}),
        )
        sync_version(tail_dir(self.root, name), version)
        return version

    def _recent_version(self, name: TableId) -> int:
        """Version of a table that an epoch does not touch, looked up again when it is older than a minute."""
        version, known_at = self._versions.get(name, (0, -_VERSION_AGE_S))
        if world.steady_seconds() - known_at < _VERSION_AGE_S:
            return version
        table = self._table(name).refreshed()
        if table is None:
            gone(str(name), tail_dir(self.root, name))
        newest: int = table.version()
        self._versions[name] = (newest, world.steady_seconds())
        return newest


def add_action(file: DataFile) -> AddAction:
    """The Add action of a file."""
    now_ms = world.now_us() // 1000
    return AddAction(file.path, file.size, {PART: file.part.value}, now_ms, True, file.stats)


def version_of_epoch(table: DeltaTable, name: TableId, epoch: int, applied: int) -> int:
    """The version whose commit applied `epoch`, of a table that carries epoch `applied` or later.

    Trims leave the state as it is. So the newest version serves when the log no longer tells and no later epoch is
    applied. Raises SinkError when a later epoch is applied and the log no longer tells.
    """
    entries: list[Mapping[str, object]] = table.history()
    for entry in entries:
        if entry.get(EPOCH_NOTE) == str(epoch):
            return int(str(entry["version"]))
    if applied == epoch:
        newest: int = table.version()
        return newest
    raise SinkError(
        f"{name}: epoch {epoch_text(epoch)} is applied, but the lake's log no longer says as which version"
    )
