"""Apply an epoch to the lake: one commit per touched table, exactly once (DESIGN 5)."""

from collections.abc import Callable, Collection, Iterable

import msgspec
import pyarrow as pa

from catchment import world
from catchment.model.epoch import DataFile, Manifest, Shapes, TableDelta, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import SinkError
from catchment.model.location import Location, location
from catchment.model.table import TableId
from catchment.sink.delta.layout import PART, Tail, delta_schema, epoch_app, former_types, table_dir, tail_dir
from catchment.sink.delta.log.actions import Action, Add, MetaData, Txn, commit_info
from catchment.sink.delta.log.commit import commit, create_table, fenced, gone, remarked
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.log.properties import is_owned, must_own
from catchment.sink.delta.log.schemas import arrow_of, protocol_of, schema_text
from catchment.sink.delta.tail.generations import tails_of

EPOCH_NOTE = "catchment.epoch"
_THREADS = 8


class DeltaSink:
    """The lake of one feed, for its one writer. Applies one epoch at a time.

    `after_table` is called after each table's commit of an epoch: the place for a crash between two tables.
    """

    def __init__(
        self,
        root: Location,
        feed: str,
        after_table: Callable[[], None] = lambda: None,
    ) -> None:
        self.root = location(root)
        self.feed = feed
        self._after_table = after_table
        self._logs: dict[Tail, DeltaLog] = {}
        # What a table's log says, and a shape of which it has all columns.
        self._fits: dict[Tail, tuple[MetaData, TableShape]] = {}
        self._versions: dict[Tail, int] = {}  # as of our last commit, or of our first look
        self._told: tuple[Shapes, dict[str, int]] | None = (
            None  # the versions that the last epoch told, by name
        )

    def apply(self, delta: TableDelta, epoch: int, fence: int, *, first: bool = True) -> int:
        """Commit a table's part of an epoch; the version that holds it.

        A replay of an applied epoch commits nothing. `first`: this may be the feed's first epoch, which
        creates the table; so does the one with which its copy begins.

        Raises LeaseLost when a later runner wrote the table, SinkConflict when other writers won every
        attempt. Raises SinkError when the lake refuses, or the table is another feed's or is gone.
        """
        name, tail = delta.shape.lake_table, Tail.of(delta.shape)
        log = self._log(tail)
        first = first or delta.shape.generation == epoch

        def attempt(on: Snapshot) -> int | None:
            must_lead(on, self.feed, fence, str(name))
            must_own(on.metadata.configuration, self.feed, str(name), log.directory)
            applied = on.transactions.get(epoch_app(self.feed, name))
            if applied is not None and applied >= epoch:
                held = version_of_epoch(log, name, epoch, applied)
                log.flush(held)  # its runner may have died before it did
                return held
            return self._commit(on, delta, epoch, fence)

        def create() -> None:
            if tail in self._versions or not first:
                gone(str(name), log.directory)
            create_table(log, delta_schema(delta.shape), [PART], self.feed)

        version = commit(log, attempt, create)
        self._versions[tail] = version
        return version

    def apply_epoch(self, manifest: Manifest, fence: int) -> dict[str, int]:
        """Apply all deltas of a manifest, in threads; the version of every table of its shapes.

        May be repeated after a crash between two tables: tables that have the epoch are left alone. An untouched table
        has the version of this runner's last commit, since nobody but trims has committed there: a reader for whom that
        lies beyond the window takes the last version that carries no later epoch. A feed's first epoch creates its
        tables, and is refused before any commit where rows stand already.
        """
        first = manifest.previous == 0
        if first:
            self.must_be_free(manifest)
        followed, told = manifest.followed, self._told
        known = told[1] if told is not None and told[0] is followed else None
        if known is None:
            self._keep_only({Tail.of(shape) for shape in followed})
        others: set[Tail] = set()
        if known is None:
            touched = {Tail.of(delta.shape) for delta in manifest.deltas}
            others = {Tail.of(shape) for shape in followed} - touched - self._versions.keys()
        with world.pool(_THREADS) as pool:
            work = [
                *(pool.submit(self._apply_one, d, manifest.epoch, fence, first) for d in manifest.deltas),
                *(pool.submit(self._look_up, tail) for tail in others),
            ]
        for one in work:
            one.result()
        shapes = followed if known is None else [delta.shape for delta in manifest.deltas]
        versions = {str(shape.table): self._versions[Tail.of(shape)] for shape in shapes}
        self._told = followed, {**(known or {}), **versions}
        return self._told[1]

    def _keep_only(self, tails: Collection[Tail]) -> None:
        """Forget the logs of copies that are followed no more."""
        self._versions = {tail: known for tail, known in self._versions.items() if tail in tails}
        self._logs = {tail: known for tail, known in self._logs.items() if tail in tails}
        self._fits = {tail: known for tail, known in self._fits.items() if tail in tails}

    def must_be_free(self, manifest: Manifest) -> None:
        """Raise SinkError when a table that the feed's first epoch would create holds something already."""
        with world.pool(_THREADS) as pool:
            list(pool.map(lambda d: self._must_be_free(d.shape, manifest), manifest.deltas))

    def take_over(self, shapes: Iterable[TableShape], fence: int) -> None:
        """Carry the fence of a new runner in every table that exists, so that an older one cannot commit to any.

        Without it, a frozen runner could still apply its epoch to tables that the new one has not written yet.
        Raises LeaseLost when a later runner wrote a table, SinkError when the lake refuses.
        """
        with world.pool(_THREADS) as pool:
            list(pool.map(lambda shape: self._take_over_one(shape, fence), shapes))

    def _take_over_one(self, shape: TableShape, fence: int) -> None:
        name, tail = shape.lake_table, Tail.of(shape)
        log = self._log(tail)

        def attempt(on: Snapshot) -> int | None:
            must_lead(on, self.feed, fence, str(name))
            info = commit_info("WRITE", world.now_us() // 1000)
            after = log.put(on, info, [*remarked(on), fenced(self.feed, fence)])
            return None if after is None else after.version

        if log.newest() is not None:
            self._versions[tail] = commit(log, attempt, lambda: gone(str(name), log.directory))

    def _must_be_free(self, shape: TableShape, manifest: Manifest) -> None:
        name = shape.lake_table
        plain, mine = DeltaLog(table_dir(self.root, name)), Tail.of(shape)
        again = shape.place_of is not None or manifest.had(name)
        before = [plain]
        before += [
            DeltaLog(directory)
            for generation, directory in tails_of(self.root, name).items()
            if generation != mine.generation
        ]
        for log in before:
            stands = log.newest()
            if stands is None:
                continue
            must_own(stands.metadata.configuration, self.feed, str(name), log.directory)
            if not again:
                raise self._stands(name, log.directory, mine=is_owned(stands.metadata.configuration))
        log = self._log(mine)
        on = log.newest()
        if on is None:
            return
        must_own(on.metadata.configuration, self.feed, str(name), log.directory)
        carried = on.transactions.get(epoch_app(self.feed, name))
        if carried != manifest.epoch and (carried is not None or on.files):
            raise self._stands(name, log.directory, mine=True)

    def _stands(self, name: TableId, where: Location, *, mine: bool) -> SinkError:
        """`mine`: the table is this feed's, and nobody else loses rows with it."""
        begins = f"{name}: feed {self.feed} begins, but there is a lake table at {where} already"
        if not mine:
            return SinkError(f"{begins}, of another program; give the feed another sink.path")
        return SinkError(
            f"{begins}, of a feed of this name whose state store and _catchment directory were lost; put those back, "
            "give the feed another sink.path, or remove that directory to copy the table again"
        )

    def _apply_one(self, delta: TableDelta, epoch: int, fence: int, first: bool) -> None:
        self.apply(delta, epoch, fence, first=first)
        self._after_table()

    def _log(self, tail: Tail) -> DeltaLog:
        log = self._logs.get(tail)
        return log or self._logs.setdefault(tail, DeltaLog(tail_dir(self.root, tail.table, tail.generation)))

    def _commit(self, on: Snapshot, delta: TableDelta, epoch: int, fence: int) -> int | None:
        """One try on top of one version; None when another commit came first."""
        now_ms = world.now_us() // 1000
        marks = [fenced(self.feed, fence), Txn(epoch_app(self.feed, delta.shape.lake_table), epoch, now_ms)]
        adds = [add_action(file) for file in delta.files if file.rows]
        info = commit_info("WRITE", now_ms, **{EPOCH_NOTE: str(epoch)})
        shape, tail = delta.shape, Tail.of(delta.shape)
        wider = [] if self._fits.get(tail) == (on.metadata, shape) else widened(on, shape)
        after = self._log(tail).put(on, info, [*wider, *marks, *adds])
        if after is None:
            return None
        self._fits[tail] = (after.metadata, shape)
        return after.version

    def _look_up(self, tail: Tail) -> None:
        """Know the version of a table to which this runner has committed nothing."""
        log = self._log(tail)
        on = log.newest()
        if on is None:
            gone(str(tail.table), log.directory)
        self._versions[tail] = on.version


def add_action(file: DataFile) -> Add:
    """The Add action of a file."""
    return Add(file.path, file.size, world.now_us() // 1000, True, file.stats, {PART: file.part.value})


def widened(on: Snapshot, shape: TableShape) -> list[Action]:
    """The metadata with the columns that a shape has gained, or that became wider; nothing where the table has them
    all. The protocol comes with it where they ask for more. Raises SinkError for a column of another type."""
    held, wanted = arrow_of(on.metadata.schema_string), delta_schema(shape)
    types, former = {field.name: field.type for field in held}, former_types(shape)
    for field in wanted:
        type_there = types.get(field.name, field.type)
        if type_there != field.type and type_there not in former.get(field.name, ()):
            raise SinkError(
                f"{shape.table}: column {field.name} is {types[field.name]} in the lake and {field.type} at the "
                "source; a changed type needs a new physical column"
            )
    wider = {field.name: field for field in wanted if types.get(field.name) != field.type}
    if not wider:
        return []
    known = [wider.pop(field.name, field) for field in held]
    wide = pa.schema([*known, *wider.values()])
    protocol = on.protocol.brought_to(protocol_of(wide))
    metadata = msgspec.structs.replace(on.metadata, schema_string=schema_text(wide))
    return [*([protocol] if protocol != on.protocol else []), metadata]


def version_of_epoch(log: DeltaLog, name: TableId, epoch: int, applied: int) -> int:
    """The version whose commit applied `epoch`, of a table that carries epoch `applied` or later.

    Trims leave the state as it is. So the newest version serves when the log no longer tells and no later epoch is
    applied. Raises SinkError when a later epoch is applied and the log no longer tells.
    """
    newest = log.newest()
    last = -1 if newest is None else newest.version
    version = last
    while (found := log.lines_of(version) if version >= 0 else None) is not None:
        if any(line.commit_info and line.commit_info.get(EPOCH_NOTE) == str(epoch) for line in found):
            return version
        version -= 1
    if applied == epoch:
        return last
    raise SinkError(
        f"{name}: epoch {epoch_text(epoch)} is applied, but the lake's log no longer says as which version"
    )
