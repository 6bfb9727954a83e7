"""Orders of the state store, obeyed between two turns of the loop."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catchment import world
from catchment.epoch.obey import obey
from catchment.model.epoch import Manifest
from catchment.model.order import Action, Answer, Kept, Order
from catchment.state import orders
from catchment.state.store import Store

# Orders are looked for so often at most.
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class _Obeyed:
    """Orders with their answers, and the epoch that carries them out."""

    epoch: int
    asked: tuple[Kept, ...]
    answers: tuple[Answer, ...]


class Commands:
    """Obeys the orders of one run. The loop's thread alone uses it. `stop` is set when the run is to end; then it
    `ended_it`. `change`: obeys the order to change a setting. `mends`: the orders to mend that were seen at the last
    look and are not carried out yet."""

    def __init__(
        self, store: Store, fence: int, stop: world.Event, change: Callable[[Order], Answer]
    ) -> None:
        self._store, self._fence, self._stop, self._change = store, fence, stop, change
        self.ended_it = False
        self.mends: tuple[Kept, ...] = ()
        self._looked_at = world.steady_seconds() - _LOOK_SECONDS
        self._obeyed: list[_Obeyed] = []

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch that carries out what is asked; None where nothing changes.

        Orders that changed something are answered when the manifest stands that does so. A run that dies in between
        finds them open, and done. Raises StateError, LeaseLost.
        """
        self.answer(standing)
        if world.steady_seconds() - self._looked_at < _LOOK_SECONDS:
            return None
        found = self.look()
        settings = tuple(kept for kept in found if kept.order.action is Action.SET)
        if settings:
            changed = tuple(self._change(kept.order) for kept in settings)
            orders.answer(self._store, settings, changed, self._fence)
        asked = tuple(kept for kept in found if kept.order.action is not Action.SET)
        if not asked:
            return None
        obeyed = obey(standing, asked, self._fence, world.now_us())
        if obeyed.manifest is None:
            orders.answer(self._store, asked, obeyed.answers, self._fence)
        else:
            self._obeyed.append(_Obeyed(obeyed.manifest.epoch, asked, obeyed.answers))
        if obeyed.stops:
            self.ended_it = True
            self._stop.set()
        return obeyed.manifest

    def look(self) -> tuple[Kept, ...]:
        """The open orders but those to mend, which are `mends` from now on."""
        self._looked_at = world.steady_seconds()
        found = orders.open_orders(self._store)
        self.mends = tuple(one for one in found if one.order.action is Action.MEND)
        return tuple(one for one in found if one.order.action is not Action.MEND)

    def mended(self, found: Mapping[Kept, Answer], epoch: int | None) -> None:
        """Orders to mend have come to these answers. They are given when the manifest of an epoch stands, or now where
        none is needed. Raises StateError, LeaseLost."""
        if not found:
            return
        asked, answers = tuple(found), tuple(found.values())
        if epoch is None:
            orders.answer(self._store, asked, answers, self._fence)
        else:
            self._obeyed.append(_Obeyed(epoch, asked, answers))
        numbers = {kept.number for kept in asked}
        self.mends = tuple(kept for kept in self.mends if kept.number not in numbers)

    def answer(self, standing: Manifest) -> None:
        """Answer the orders that were obeyed last, if `standing` is behind the manifest that carries them out."""
        obeyed, self._obeyed = self._obeyed, []
        for one in obeyed:
            if standing.epoch >= one.epoch:
                orders.answer(self._store, one.asked, one.answers, self._fence)
