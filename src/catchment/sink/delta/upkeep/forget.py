"""Which rows of the epochs table nobody asks for any more.

All of the two days before the newest one stay, and all from the oldest on that waits to be settled. Of older ones those
stay that are kept, that plain tables were within the window of changes, and as of which tables stand.
"""

from collections.abc import Collection, Iterator

from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_number, gci_of
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import epoch_app
from catchment.sink.delta.tail.dated import with_epochs
from catchment.sink.delta.upkeep.logs import Logs

# Longer than the longest window of readers, and of readers of changes (config.sink.KEEP_SECONDS_MAX, ATTEMPT_SECONDS).
EPOCHS_SECONDS = 2 * 86_400


def referred(manifest: Manifest) -> Iterator[int]:
    """The earlier epochs as of which an epoch has tables, or from which their copies go on."""
    yield from (one.epoch for one in manifest.stale)
    yield from (one.epoch for one in manifest.outside)
    for shape in manifest.followed:
        if shape.renews is not None:
            yield from (shape.renews.of, shape.renews.at)
        if shape.replaces is not None:
            yield shape.replaces.of


class Forgetting:
    """Drops old rows of one feed's epochs. It remembers to which rows kept epochs refer."""

    def __init__(self, epochs: EpochsTable, logs: Logs) -> None:
        self._epochs, self._logs = epochs, logs
        self._referred: dict[int, frozenset[int]] = {}

    def drop(self, fence: int, newest: Manifest, kept: Collection[int], standing: Collection[int]) -> int:
        """Drop what nobody asks for; how many rows those were. `kept`: epochs that stay beyond the window. `standing`:
        epochs that plain tables are, or were within the window. Raises LeaseLost, SinkConflict, SinkError."""
        before = self._before(newest)
        last = next(iter(self._epochs.last(1, before - 1)), None)
        if last is None:
            return 0
        # An epoch refers to an earlier one without a gap in time: a later one refers to none in front of `last` unless
        # `last` does.
        needed = {last.commit.epoch, *referred(last.manifest), *referred(newest), *kept, *standing}
        self._referred = {epoch: self._referred.get(epoch) or self._of(epoch) for epoch in kept}
        standing_at = [(one.table, one.epoch) for one in newest.stale]
        standing_at += [(one.table, one.epoch) for one in newest.outside if one.epoch]
        stand = {self._settled(newest.feed, table, epoch) for table, epoch in standing_at}
        return self._epochs.drop(fence, before, EPOCHS_SECONDS, needed.union(stand, *self._referred.values()))

    def _before(self, newest: Manifest) -> int:
        """Rows of epochs in front of this one may go."""
        since = epoch_number(max(0, gci_of(newest.epoch) - EPOCHS_SECONDS))
        tails = (self._logs(shape)[1] for shape in newest.followed)
        waiting = (
            epoch
            for tail in tails
            if (on := tail.newest()) is not None
            for epoch, _ in with_epochs(tail.directory, on)
        )
        return min(since, *waiting, newest.epoch)

    def _settled(self, feed: str, table: TableId, epoch: int) -> int:
        """The epoch that the plain table of one is that stands as of `epoch`; 0 where there is none."""
        row = self._epochs.at(epoch)
        if row is None:
            return 0
        plain = self._logs(row.manifest.shape(table))[0].newest()
        return 0 if plain is None else plain.transactions.get(epoch_app(feed, table), 0)

    def _of(self, epoch: int) -> frozenset[int]:
        row = self._epochs.at(epoch)
        return frozenset() if row is None else frozenset(referred(row.manifest))
