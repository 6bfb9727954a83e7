"""Applying a manifest: the tables of the sink, then its row of epochs, then the commit record (DESIGN 5)."""

import logging
from dataclasses import dataclass

from catchment import world
from catchment.feed.retries import may_repeat, pause_seconds
from catchment.model.epoch import Commit, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError
from catchment.sink.port import Sink
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.lease import Lease
from catchment.state.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Applier:
    """Applies the epochs of one feed, one at a time and in order."""

    store: Store
    lease: Lease
    sink: Sink
    stop: world.Event
    fault: Injector = no_fault

    def apply(self, manifest: Manifest) -> Commit:
        """Apply a manifest of the store, make its epoch readable and write its commit.

        The applier tries again, with the same manifest, what may pass, such as a conflict with other writers. Tables,
        epochs table and store each know whether they have the epoch. Raises CatchmentError, at once when the run is to
        stop.
        """
        failures = 0
        while True:
            try:
                return self._apply(manifest)
            except CatchmentError as error:
                failures += 1
                if not may_repeat(error, failures) or self.stop.wait(pause_seconds(failures)):
                    raise
                _log.warning(
                    "feed %s: epoch %s is applied again, after %d failures: %s",
                    self.store.feed,
                    epoch_text(manifest.epoch),
                    failures,
                    error,
                )

    def _apply(self, manifest: Manifest) -> Commit:
        self.lease.check()
        versions = self.sink.apply(manifest, self.lease.fence)
        self.fault(Fault.AFTER_APPLY)
        digest = self.store.digest(manifest.epoch)
        commit = Commit(manifest.epoch, digest, world.now_us(), versions)
        self.sink.record(manifest, commit, self.lease.fence)
        self.fault(Fault.AFTER_EPOCH_ROW)
        self.store.put_commit(commit, self.lease.fence)
        return commit
