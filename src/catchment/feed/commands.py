"""Orders of the state store, obeyed between two turns of the loop."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from catchment import world
from catchment.epoch.obey import obey
from catchment.epoch.skips import skip_answer, stopped_elsewhere
from catchment.feed.edition import Edition
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, StateError
from catchment.model.order import BRING_A_FILE, Action, Answer, Kept, Order
from catchment.model.position import LogOffset
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


@dataclass(frozen=True)
class Obeying:
    """Who obeys an order to change a setting, and one to go by another feed file: it is answered, or an edition
    comes of it."""

    change: Callable[[Order], Answer]
    apply: Callable[[Kept, Manifest], Answer | Edition]


def _waits(kept: Kept | Order, *_: Manifest) -> Answer:
    raise ValueError(f"{kept} waits for a run")


# Where no run is: what it goes by is its own matter, so that such orders are not looked for.
NOBODY = Obeying(_waits, _waits)


class Superseded(Exception):
    """The loop ends where it stands, and another one goes on by an edition of the feed file."""

    def __init__(self, edition: Edition) -> None:
        super().__init__("the run goes on by another feed file")
        self.edition = edition


class Commands:
    """Obeys the orders of one run. The loop's thread alone uses it. `stop` is set when the run is to end; then it
    `ended_it`. `obeying`: who obeys the orders that change what the run goes by. `mends`: the orders to mend that were
    seen at the last look and are not carried out yet. `answered` hears of each order that got its answer."""

    def __init__(
        self,
        store: Store,
        fence: int,
        stop: world.Event,
        obeying: Obeying,
        answered: Callable[[tuple[Kept, ...]], None] = lambda kept: None,
    ) -> None:
        self._store, self._fence, self._stop, self._obeying = store, fence, stop, obeying
        self._answered = answered
        self.ended_it = False
        self.mends: tuple[Kept, ...] = ()
        self._looked_at = world.steady_seconds() - _LOOK_SECONDS
        self._obeyed: list[_Obeyed] = []
        self._skips: tuple[Kept, ...] = ()

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch that carries out what is asked; None where nothing changes.

        Orders that changed something are answered when the manifest stands that does so. A run that dies in between
        finds them open, and done. Raises StateError, LeaseLost, Superseded.
        """
        self.answer(standing)
        if world.steady_seconds() - self._looked_at < _LOOK_SECONDS:
            return None
        found = self._without_skips(self.look(), standing)
        settings = tuple(kept for kept in found if kept.order.action is Action.SET)
        if settings:
            changed = tuple(self._obeying.change(kept.order) for kept in settings)
            self._give(settings, changed)
        files = tuple(kept for kept in found if kept.order.action in BRING_A_FILE)
        self._go_by_another(files, standing)
        asked = tuple(kept for kept in found if kept not in settings and kept not in files)
        if not asked:
            return None
        obeyed = obey(standing, asked, self._fence, world.now_us())
        if obeyed.manifest is None:
            self._give(asked, obeyed.answers)
        else:
            self._obeyed.append(_Obeyed(obeyed.manifest.epoch, asked, obeyed.answers))
        if obeyed.stops:
            self.ended_it = True
            self._stop.set()
        return obeyed.manifest

    def _go_by_another(self, files: tuple[Kept, ...], standing: Manifest) -> None:
        """Raise Superseded for the first order that brings another feed file; the others wait until it is gone by."""
        for kept in files:
            found = self._obeying.apply(kept, standing)
            if isinstance(found, Edition):
                raise Superseded(found)
            self._give((kept,), (found,))

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
            self._give(asked, answers)
        else:
            self._obeyed.append(_Obeyed(epoch, asked, answers))
        numbers = {kept.number for kept in asked}
        self.mends = tuple(kept for kept in self.mends if kept.number not in numbers)

    def aside(self) -> dict[str, frozenset[LogOffset]]:
        """Where something stands that orders set aside, by shard."""
        found: dict[str, frozenset[LogOffset]] = {}
        for order in (kept.order for kept in self._skips):
            if order.at is not None:
                found[order.shard] = found.get(order.shard, frozenset()) | {order.at}
        return found

    def sets_aside(self, error: CatchmentError) -> bool:
        """Whether an order sets aside what an error names; as `set_aside_at` has it."""
        return self.set_aside_at(error) is not None

    def set_aside_at(self, error: CatchmentError) -> LogOffset | None:
        """Where that is which an error names and an order sets aside. Without such an order the error says how to give
        one, and orders for other places of that shard's log are refused."""
        if not (error.shard and error.place):
            return None
        mine = [kept for kept in self._skips if kept.order.shard == error.shard]
        at = next((kept.order.at for kept in mine if str(kept.order.at) == error.place), None)
        if at is not None:
            return at
        refused = tuple(stopped_elsewhere(str(error), world.now_us()) for _ in mine)
        self._skips = tuple(kept for kept in self._skips if kept not in mine)
        with suppress(StateError):  # the error is to be told
            self._give(tuple(mine), refused)
        error.way_out = (
            f"or `catchment dump skip FEED.yaml --shard {error.shard} --at {error.place}` sets it aside, and the "
            "tables that it may have changed are copied again"
        )
        return None

    def _without_skips(self, asked: tuple[Kept, ...], standing: Manifest) -> tuple[Kept, ...]:
        """The other orders. Those that set something aside are answered when the log is read behind it."""
        self._skips = ()
        for kept in asked:
            if kept.order.at is None:
                continue
            answer = skip_answer(standing, kept.order.shard, kept.order.at, world.now_us())
            if answer is None:
                self._skips += (kept,)
            else:
                self._give((kept,), (answer,))
        return tuple(kept for kept in asked if kept.order.at is None)

    def answer(self, standing: Manifest) -> None:
        """Answer the orders that were obeyed last, if `standing` is behind the manifest that carries them out. So it
        does those that set something aside in front of it."""
        if self._skips:
            self._without_skips(self._skips, standing)
        obeyed, self._obeyed = self._obeyed, []
        for one in obeyed:
            if standing.epoch >= one.epoch:
                self._give(one.asked, one.answers)

    def _give(self, asked: tuple[Kept, ...], answers: tuple[Answer, ...]) -> None:
        give(self._store, self._fence, self._answered, asked, answers)


def give(
    store: Store,
    fence: int,
    answered: Callable[[tuple[Kept, ...]], None],
    asked: tuple[Kept, ...],
    answers: tuple[Answer, ...],
) -> None:
    """Keep the answers of orders, and tell of them. Raises StateError, LeaseLost."""
    orders.answer(store, asked, answers, fence)
    answered(tuple(replace(kept, answer=given) for kept, given in zip(asked, answers, strict=True)))
