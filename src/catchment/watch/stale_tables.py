"""Tables that readers see as of an earlier epoch: told when that begins and when it ends.

A trouble is one line of the log and one notice, however many tables it makes stale. Its end is one line, too.
"""

import logging
from collections.abc import Iterable

from catchment.config import NotifyEvent
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.log_fields import about
from catchment.model.named import by_cause, tables_named
from catchment.model.shared_troubles import SharedTroubles
from catchment.model.stale import Stale
from catchment.model.table import TableId
from catchment.watch.notify import Notifier
from catchment.watch.vitals import Vitals

_log = logging.getLogger(__name__)


class StaleTables:
    """Compares each committed epoch with the one before, for one run. One call at a time."""

    def __init__(self, standing: Manifest, vitals: Vitals, notifier: Notifier) -> None:
        self._vitals = vitals
        self._notifier = notifier
        self._known: dict[TableId, Stale] = {}
        self._troubles = SharedTroubles[TableId]()
        self._take(standing)
        self._begin(standing.stale)

    def observe(self, manifest: Manifest) -> None:
        """An epoch is committed."""
        known = self._known
        if not manifest.stale and not known:
            return
        self._take(manifest)
        for message in self._begin(one for t, one in self._known.items() if str(known.get(t)) != str(one)):
            self._notifier.tell(NotifyEvent.STALE, message)
        self._end(known.keys() - self._known.keys(), manifest)

    def _begin(self, stale: Iterable[Stale]) -> list[str]:
        messages = []
        for said, tables in by_cause((one.table, one.said) for one in stale).items():
            message = f"{tables_named(tables)} {said}"
            _log.warning("%s", message, extra=about(tables=tables))
            messages.append(message)
            self._troubles.begin(tables)
        return messages

    def _end(self, tables: Iterable[TableId], manifest: Manifest) -> None:
        carried = manifest.known.tables
        exact = sorted(table for table in tables if table in carried)
        gone = [table for table in tables if table not in carried]  # they have left the feed
        epoch = epoch_text(manifest.epoch)
        for over in self._troubles.passed(exact, gone):
            _log.info("%s exact again as of epoch %s", tables_named(over), epoch, extra=about(tables=over))

    def _take(self, manifest: Manifest) -> None:
        self._known = {one.table: one for one in manifest.stale}
        self._vitals.observe_stale(self._known.values())
