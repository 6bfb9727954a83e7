"""Tables that readers see as of an earlier epoch: told when that begins and when it ends."""

import logging

from catchment.config import NotifyEvent
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_text
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
        self._take(standing)
        for stale in standing.stale:
            _log.warning("%s", stale)

    def observe(self, manifest: Manifest) -> None:
        """An epoch is committed."""
        known = self._known
        if not manifest.stale and not known:
            return
        self._take(manifest)
        for table, stale in self._known.items():
            if str(known.get(table)) != str(stale):
                _log.warning("%s", stale)
                self._notifier.tell(NotifyEvent.STALE, str(stale))
        for table in known.keys() - self._known.keys():
            if table in manifest.known.tables:
                _log.info("%s is exact again as of epoch %s", table, epoch_text(manifest.epoch))

    def _take(self, manifest: Manifest) -> None:
        self._known = {one.table: one for one in manifest.stale}
        self._vitals.observe_stale(self._known.values())
