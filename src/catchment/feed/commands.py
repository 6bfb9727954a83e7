"""Orders of the state store, obeyed between two turns of the loop."""

from catchment import world
from catchment.epoch.obey import obey
from catchment.model.epoch import Manifest
from catchment.model.order import Answer, Kept
from catchment.state import orders
from catchment.state.store import Store

# Orders are looked for so often at most.
_LOOK_SECONDS = 0.5


class Commands:
    """Obeys the orders of one run. The loop's thread alone uses it. `stop` is set when the run is to end; then it
    `ended_it`."""

    def __init__(self, store: Store, fence: int, stop: world.Event) -> None:
        self._store, self._fence, self._stop = store, fence, stop
        self.ended_it = False
        self._began_us = world.now_us()
        self._looked_at = world.steady_seconds() - _LOOK_SECONDS
        self._obeyed: tuple[tuple[Kept, ...], tuple[Answer, ...]] | None = None

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch that carries out what is asked; None where nothing changes.

        Orders that changed something are answered when the manifest stands that does so. A run that dies in between
        finds them open, and done. Raises StateError, LeaseLost.
        """
        self.answer()
        if world.steady_seconds() - self._looked_at < _LOOK_SECONDS:
            return None
        self._looked_at = world.steady_seconds()
        asked = orders.open_orders(self._store)
        if not asked:
            return None
        obeyed = obey(standing, asked, self._began_us, world.now_us())
        if obeyed.manifest is None:
            orders.answer(self._store, asked, obeyed.answers, self._fence)
        else:
            self._obeyed = asked, obeyed.answers
        if obeyed.stops:
            self.ended_it = True
            self._stop.set()
        return obeyed.manifest

    def answer(self) -> None:
        """Answer the orders that a manifest has carried out which stands by now."""
        if self._obeyed is not None:
            orders.answer(self._store, *self._obeyed, self._fence)
            self._obeyed = None
