"""The subscribers of a feed: they begin where they have acknowledged, at whichever server."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from catchment import world
from catchment.model.errors import ConfigError, StateError
from catchment.model.position import Order
from catchment.model.subscription import Subscription
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.client import Client
from catchment.serve.hub.hub import Hub, Opening, Stays, always, at_last
from catchment.serve.hub.said import Said, must_be_the_same
from catchment.serve.hub.subscribed import Slip, Subscribed, taken_over
from catchment.serve.hub.telling import M, Telling
from catchment.serve.stream.source import Source
from catchment.serve.stream.vgtid import StreamCut, read, written
from catchment.serve.stream.vgtid_order import order_of
from catchment.state import subscribers
from catchment.state.store import Store

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ATTEMPTS: Final = 20


class SubscriberStanding(msgspec.Struct, frozen=True):
    """How a subscriber fares. `slip`: of what it was given here; None where it is not here."""

    name: str
    acknowledged_us: int
    slip: Slip | None


class Subscribers:
    """Those of the feed of `store`. `bytes_max`: of messages that one is given before it acknowledges. Any thread may
    use it."""

    def __init__(self, hub: Hub, source: Source, store: Store, bytes_max: int) -> None:
        self._hub = hub
        self._source = source
        self._store = store
        self._bytes_max = bytes_max
        self._lock = world.lock()
        self._here: dict[str, Subscribed[Any]] = {}

    def open(
        self,
        name: str,
        ask: Ask,
        form: Callable[[], Telling[M]],
        shown: str = "",
        stays: Stays = always,
    ) -> Subscribed[M]:
        """As `opening`, for who does nothing while it waits."""
        return at_last(self.opening(name, ask, form, shown, stays))

    def opening(
        self,
        name: str,
        ask: Ask,
        form: Callable[[], Telling[M]],
        shown: str = "",
        stays: Stays = always,
    ) -> Opening[Subscribed[M]]:
        """Steps to a client of that name, as those of a hub. It takes the place of any other; `ask.vgtid` is where it
        begins for the first time.

        Raises ConfigError for a name that cannot be one, and for other rules than those with which it began; TakenOver
        where another client came meanwhile; and what Hub.open raises.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(
                "subscriber: a name has up to 64 letters, digits, dots, hyphens and underscores"
            )
        said = Said.of(ask)
        kept, mine = self._find(name, said), None
        for _ in range(_ATTEMPTS):
            begins = ask if kept is None else replace(ask, vgtid=kept.vgtid)
            client = yield from self._hub.opening(begins, form, shown or name, stays)
            try:
                if kept is None and (new := self._added(name, said, client.told)):
                    return self._opened(client, form, new)
                mine = self._claimed(name, said, mine)
            except BaseException:
                self._hub.close(client)
                raise
            if kept is not None and mine.vgtid == kept.vgtid:
                return self._opened(client, form, mine)
            # While this one was opened, which may take long, another one came first, or something was acknowledged.
            self._hub.close(client)
            kept = mine
        raise _written_first(name, "begin")

    def _opened(self, client: Client[M], form: Callable[[], Telling[M]], mine: Subscription) -> Subscribed[M]:
        kept_now = partial(subscribers.find, self._store, mine.name)
        subscribed = Subscribed(client, form().size, mine, kept_now, self._bytes_max)
        with self._lock:
            self._here[mine.name] = subscribed
        return subscribed

    def close(self, subscribed: Subscribed[M]) -> None:
        """End it; what it has acknowledged stays."""
        with self._lock:
            self._here = {name: one for name, one in self._here.items() if one is not subscribed}
        self._hub.close(subscribed.client)

    def acknowledge(self, name: str, vgtid: str) -> bool:
        """The subscriber has all up to `vgtid`; False where it has acknowledged that, or more, before.

        Raises ConfigError where there is none of that name, and for what it cannot have been given; SourceError where a
        log changed its base name since and its shard does not answer.
        """
        given = read(vgtid, self._source)
        if not isinstance(given, StreamCut):
            raise ConfigError("acknowledge: give the text of a vgtid event; this is a place to begin")
        for _ in range(_ATTEMPTS):
            kept = subscribers.find(self._store, name)
            if kept is None:
                raise ConfigError(
                    f"subscriber {name[:64]!r}: there is none; it comes about by a stream of that name"
                )
            if not self._is_later(name, kept, given):
                return False
            if subscribers.replace(self._store, kept, vgtid=vgtid, acknowledged_us=world.now_us()):
                self._wake(name)
                return True
        raise _written_first(name, "acknowledge")

    def remove(self, name: str) -> bool:
        """Forget one; whether there was one. Its stream ends."""
        return subscribers.remove(self._store, name)

    def listed(self) -> list[Subscription]:
        """All of the feed, by name."""
        return subscribers.listed(self._store)

    def standings(self) -> list[SubscriberStanding]:
        """How they fare, by name."""
        with self._lock:
            here = dict(self._here)
        return [
            SubscriberStanding(
                one.name, one.acknowledged_us, here[one.name].slip if one.name in here else None
            )
            for one in self.listed()
        ]

    def _wake(self, name: str) -> None:
        """Its stream, if it is here, may have waited for this."""
        with self._lock:
            here = self._here.get(name)
        if here is not None:
            here.wake()

    def _find(self, name: str, said: Said) -> Subscription | None:
        kept = subscribers.find(self._store, name)
        if kept is not None:
            must_be_the_same(name, kept.asked, said)
        return kept

    def _added(self, name: str, said: Said, begins: StreamCut) -> Subscription | None:
        """Note one that comes for the first time; None where another one did first."""
        new = Subscription(name, written(begins), said.written, 1, world.now_us())
        return new if subscribers.add(self._store, new) else None

    def _claimed(self, name: str, said: Said, mine: Subscription | None) -> Subscription:
        """The subscriber as it is now, which this client has: it takes the place of others, if it has not yet.

        Raises TakenOver once a later client has it.
        """
        for _ in range(_ATTEMPTS):
            kept = self._find(name, said)
            if kept is None or (mine is not None and kept.generation != mine.generation):
                raise taken_over(name)
            if mine is not None:
                return kept
            if claimed := subscribers.replace(self._store, kept, generation=kept.generation + 1):
                return claimed
        raise _written_first(name, "begin")

    def _is_later(self, name: str, kept: Subscription, given: StreamCut) -> bool:
        before = read(kept.vgtid, self._source)
        assert isinstance(before, StreamCut)
        if before.cut.shards.keys() - given.cut.shards.keys():  # it may have got more
            raise ConfigError(f"subscriber {name}: the vgtid is of other shards than its stream")
        order = order_of(self._source, given, before)
        if order is Order.CONCURRENT:
            raise ConfigError(f"subscriber {name}: the vgtid is not one of those that it was given")
        return order is Order.AFTER


def _written_first(name: str, what: str) -> StateError:
    return StateError(f"subscriber {name}: other servers wrote it {_ATTEMPTS} times first; {what} again")
