"""Applying a manifest: the tables of the sink, then its row of epochs, then the commit record (DESIGN 5)."""

import logging
from dataclasses import dataclass, field

from catchment import world
from catchment.model.epoch import Commit, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, SinkAway
from catchment.model.log_fields import about
from catchment.model.retries import is_waited_for, may_repeat, pause_seconds
from catchment.sink.port import Sink
from catchment.state.faults import Fault, Injector, no_fault
from catchment.state.lease import Lease
from catchment.state.store import Store
from catchment.watch.troubles import Troubles

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Applier:
    """Applies the epochs of one feed, one at a time and in order. `wait_max`: seconds for which a lake that does not
    answer is waited for; None: for ever. `troubles` hears of that."""

    store: Store
    lease: Lease
    sink: Sink
    stop: world.Event
    fault: Injector = no_fault
    wait_max: float | None = 0.0
    troubles: Troubles = field(default_factory=Troubles)

    def apply(self, manifest: Manifest) -> Commit:
        """Apply a manifest of the store, make its epoch readable and write its commit.

        The applier tries again, with the same manifest, what may pass, such as a conflict with other writers, and waits
        for a lake that does not answer. Tables, epochs table and store each know whether they have the epoch. Raises
        CatchmentError, at once when the run is to stop.
        """
        failures, began, without_lake = 0, world.steady_seconds(), False
        while True:
            try:
                commit = self._apply(manifest)
            except CatchmentError as error:
                failures += 1
                waited = world.steady_seconds() - began
                if not may_repeat(error, failures) and not is_waited_for(error, waited, self.wait_max):
                    raise
                if isinstance(error, SinkAway):
                    without_lake = True
                    self.troubles.went_away(error)
                else:
                    self._tell_of_failures(manifest, failures, error)
                if self.stop.wait(pause_seconds(failures)):
                    raise
                continue
            if without_lake:
                self.troubles.came_back(SinkAway.away)
            return commit

    def _tell_of_failures(self, manifest: Manifest, failures: int, error: CatchmentError) -> None:
        _log.warning(
            "feed %s: epoch %s is applied again, after %d failures: %s",
            self.store.feed,
            epoch_text(manifest.epoch),
            failures,
            error,
            extra=about(error=error),
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
