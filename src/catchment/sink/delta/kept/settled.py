"""Which committed epochs the plain tables of a feed all are: those can be kept without the tails."""

from collections.abc import Callable, Iterator

import msgspec

from catchment.model.epoch import EpochRow, TableShape
from catchment.model.epoch_number import epoch_number, gci_of
from catchment.model.errors import SinkError
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.kept.retained import retained
from catchment.sink.delta.layout import epoch_app
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.tail.come import come

Logs = Callable[[TableShape], tuple[DeltaLog, DeltaLog]]


class SettledEpochs(msgspec.Struct, frozen=True):
    """Finds them from the logs of the plain tables and of the tails, which `logs` gives."""

    epochs: EpochsTable
    logs: Logs

    def last_of_each(self, grain: int, after: int | None) -> list[int]:
        """The last one of each so many seconds that lies behind `after`, the newest first. None: the newest alone,
        since of earlier ones files may be gone. Nothing more is found where a table cannot be read.

        What is looked at grows with what has come since then.
        """
        found: list[int] = []
        try:
            epoch = self._last(None, after or 0)
            while epoch is not None:
                found.append(epoch)
                begin = epoch_number(gci_of(epoch) // grain * grain)
                epoch = None if after is None else self._last(begin - 1, after)
        except SinkError:
            return found
        return found

    def _last(self, until: int | None, after: int) -> int | None:
        """The newest up to `until`, the newest committed one if None; None where it would not lie behind `after`."""
        while rows := self.epochs.last(1, until):
            (row,) = rows
            if row.commit.epoch <= after:
                return None
            until = min(self._all_reached(row), default=0)
            if until == row.commit.epoch:
                return until
        return None

    def _all_reached(self, row: EpochRow) -> Iterator[int]:
        """Of each table what `_reached` says; of a stale one, whether it is what it is to readers."""
        for shape in row.manifest.shapes:
            if row.manifest.stale_since(shape.table) is None:
                yield self._reached(row, shape)
        for stale in row.manifest.stale:
            then = self.epochs.at(stale.epoch)
            reached = 0 if then is None else self._reached(then, then.manifest.shape(stale.table))
            yield row.commit.epoch if reached == stale.epoch else reached

    def _reached(self, row: EpochRow, shape: TableShape) -> int:
        """The epoch itself, where the plain table has all that had come to the table; else the one that it is."""
        plain, tail = self.logs(shape)
        app, epoch = epoch_app(row.manifest.feed, shape.table), row.commit.epoch
        found = retained(plain, app, epoch)
        settled = 0 if found is None else found.epoch
        last = come(tail, shape.table, app, epoch, row.commit.versions)
        return epoch if last is not None and last <= settled else settled
