"""Keeps up the tables of a lake: settles them, joins files, trims the tails, and cleans up.

It brings tables to committed epochs only, so it needs no lease. The runner gives it a fence, which keeps it from
writing once a later runner has come.
"""

from pathlib import Path

import msgspec

from catchment import world
from catchment.model.epoch import Manifest, TableShape
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, LeaseLost, SinkError
from catchment.model.location import location
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.kept.choice import Past, chosen
from catchment.sink.delta.kept.record import KeptEpochs
from catchment.sink.delta.kept.settled import SettledEpochs
from catchment.sink.delta.layout import epoch_app, settled_app, table_dir
from catchment.sink.delta.log.checkpoint import checkpoint
from catchment.sink.delta.plain.generation import generation
from catchment.sink.delta.plain.index import Index, clean_index
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.plain.tail import Limits
from catchment.sink.delta.upkeep.clean import Cleaner, Keeping
from catchment.sink.delta.upkeep.forget import Forgetting
from catchment.sink.delta.upkeep.logs import Logs
from catchment.sink.delta.upkeep.table import keep_up
from catchment.sink.delta.upkeep.versions import Versions
from catchment.sink.port import Settled
from catchment.state.faults import from_environment


class UpkeepOrder(msgspec.Struct, frozen=True):
    """What to keep up. `tables`: those alone, all if None. `cleans`: files that nobody needs are removed, too.

    `keep_seconds`: the readers' window; `past`: what is kept beyond it. `attempt_seconds`: how long files that no
    commit has named yet are kept. `index`: the directory of side files on this machine; None: data files are scanned.
    """

    root: str
    feed: str
    fence: int
    keep_seconds: float
    attempt_seconds: float = 3600.0
    limits: Limits = Limits()
    form: Form = Form()
    past: Past = Past()
    tables: tuple[TableId, ...] | None = None
    cleans: bool = True
    index: str | None = None

    def index_of(self, table: TableId) -> Index:
        """The index of a table on this machine."""
        directory = None if self.index is None else Path(self.index)
        return Index(table_dir(location(self.root), table), directory)


class Keeper:
    """The lake of one feed. It remembers what it has read of the logs, so that a later order reads on from there."""

    def __init__(self, root: str, feed: str) -> None:
        self._root, self._feed = location(root), feed
        self._epochs = EpochsTable(self._root, feed)
        self._logs = Logs(self._root)
        self._forgetting = Forgetting(self._epochs, self._logs)
        self._cleaner = Cleaner(self._root, feed, self._epochs, self._logs)
        self._stood: set[tuple[TableId, int]] = set()
        self._indexes: dict[TableId, Index] = {}
        self._versions = Versions(self._root, feed)
        self._kept = KeptEpochs(self._root, feed)
        self._fault = from_environment()

    def carry_out(self, order: UpkeepOrder, newest: Manifest | None = None) -> Settled:
        """Bring the order's tables to the newest committed epoch, which is looked up if it is not given. A table that
        cannot be settled keeps neither the others nor the cleaner from their turn; then the first error is raised.
        """
        if newest is None:
            row = self._epochs.newest()
            if row is None:
                return Settled({}, 0)
            newest = row.manifest
        changes = {}
        failures: list[Exception] = []
        shapes = [s for s in newest.shapes if order.tables is None or s.table in order.tables]
        for shape in shapes:
            try:
                settled = self._settle(order, newest, shape)
            except Exception as error:
                failures.append(error)
                continue
            if settled:
                changes[str(shape.table)] = settled
        for shadow in newest.shadows:
            checkpoint(self._logs(shadow.shape)[1])
        try:
            self._settle_standing(order, newest)
            self._versions.record({shape.table: self._logs(shape)[0] for shape in shapes})
            self._epochs.checkpoint()
        except CatchmentError as error:
            failures.append(error)
        deleted = self._clean(order, newest) if order.cleans else 0
        if order.cleans:  # which asks for the logs of all tables that are followed
            self._logs.forget_others()
            self._stood &= self._stands(newest)
            self._indexes = {table: one for table, one in self._indexes.items() if table in newest.tables}
        if failures:
            raise failures[0]
        return Settled(changes, deleted)

    def _settle(self, order: UpkeepOrder, newest: Manifest, shape: TableShape) -> int:
        """Bring a plain table to the newest epoch; the rows of changes that it took up. One that is stale stays as it
        is while its new copy grows in a tail, unless readers wait for the settle."""
        stale = newest.stale_since(shape.table)
        if stale is not None and not stale.settles:
            checkpoint(self._logs(shape)[1])
            return 0
        return self._keep_up(order, shape, newest.epoch)

    def _settle_standing(self, order: UpkeepOrder, newest: Manifest) -> None:
        """Bring the plain tables of stale tables, and of those that left, to the last epoch that has them. One that
        goes on from there has been brought there."""
        for table, epoch in sorted(self._stands(newest) - self._stood):
            if order.tables is not None and table not in order.tables:
                continue
            shape = self._shape_at(table, epoch)
            if self._is_whole(shape):
                self._keep_up(order, shape, epoch)
            self._stood.add((table, epoch))

    def _stands(self, newest: Manifest) -> set[tuple[TableId, int]]:
        """The tables that stand as of an earlier epoch, and that epoch."""
        stale = {(one.table, one.epoch) for one in newest.stale if not one.settles}
        return stale | {(one.table, one.epoch) for one in newest.outside if one.epoch}

    def _is_whole(self, shape: TableShape) -> bool:
        """Whether plain table and tail belong together: of a table that left somebody may have removed one of them."""
        plain, tail = (log.newest() for log in self._logs(shape))
        app = epoch_app(self._feed, shape.table)
        settled = 0 if plain is None else plain.transactions.get(app, 0)
        return tail is not None and settled >= tail.transactions.get(settled_app(self._feed, shape.table), 0)

    def _keep_up(self, order: UpkeepOrder, shape: TableShape, until: int) -> int:
        table = shape.table
        plain, tail = self._logs(shape)
        goes_on = shape.renews or shape.replaces
        if goes_on is not None and generation(plain.newest(), self._feed, table) < shape.generation:
            # What it goes on from stays, so all of that has to be there first.
            former = self._shape_at(table, goes_on.of)
            if self._is_whole(former):
                self._keep_up(order, former, goes_on.of)
        if table not in self._indexes:
            self._indexes[table] = order.index_of(table)
        index = self._indexes[table]
        return keep_up(
            SettleOrder(plain, tail, shape, self._feed, order.fence, until, order.limits, order.form, index),
            lambda epoch: shape if epoch == until else self._shape_at(table, epoch),
            self._fault,
        )

    def _shape_at(self, table: TableId, epoch: int) -> TableShape:
        row = self._epochs.at(epoch)
        if row is None:
            raise SinkError(
                f"{table}: epoch {epoch_text(epoch)} stands in its tail, and the epochs table lacks it"
            )
        return row.manifest.shape(table)

    def _clean(self, order: UpkeepOrder, newest: Manifest) -> int:
        """Join the files of the epochs table, and remove what nobody needs; how many files that were. A later run that
        has come cleans by its own rules."""
        failures: list[CatchmentError] = []
        try:
            self._epochs.compact(order.fence)
        except LeaseLost:
            raise
        except CatchmentError as error:
            failures.append(error)
        kept = self._kept.change(order.fence, lambda known: self._wanted(order.past, known))
        clean_index(None if order.index is None else Path(order.index))
        deleted = self._cleaner.clean(Keeping(order.keep_seconds, order.attempt_seconds, kept))
        # A table that was just left or went stale may have epochs that wait: a settle asks for their rows.
        if self._stands(newest) <= self._stood:
            self._forgetting.drop(order.fence, newest, kept, self._cleaner.standing)
        if failures:
            raise failures[0]
        return deleted

    def _wanted(self, past: Past, known: tuple[int, ...]) -> tuple[int, ...]:
        """Which epochs are to be kept from now on: of those that are, and of the settled ones since."""
        newest = self._epochs.newest()
        if newest is None or not past.grain:
            return ()
        # An epoch that was taken back is none.
        there = [epoch for epoch in known if epoch <= newest.commit.epoch]
        settled = SettledEpochs(self._epochs, self._logs).last_of_each(
            past.grain, there[-1] if there else None
        )
        return chosen([*there, *settled], world.now_us() / 1e6, past)
