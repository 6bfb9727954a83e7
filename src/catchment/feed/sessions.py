"""How many sessions of each server the run has, where a ceiling is set for all feeds of the state store.

The loop's thread alone claims more, or gives some back: between two turns, when nothing reads.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed
from catchment.model.errors import StateError, StoppedWaiting
from catchment.model.sessions import Claim, Held, Needs, may_hold, why_waiting
from catchment.state.lease import Lease
from catchment.state.sessions import Claims
from catchment.state.store import Store
from catchment.watch.report import NOBODY, Observer
from catchment.watch.session_metrics import SessionMetrics
from catchment.watch.watch import Watch

# Whether others wait for sessions, or gave some back, is looked at so often, and so often by a run that waits.
LOOK_SECONDS = 1.0
_WAIT_SECONDS = 0.5

_log = logging.getLogger(__name__)


class Sessions:
    """Those of one run. `now` is replaced whole, so that others may look.

    Methods raise StateError and LeaseLost, and StoppedWaiting where `stop` is set while the run waits.
    """

    def __init__(
        self,
        feed: Feed,
        ceiling: int,
        store: Store,
        lease: Lease,
        stop: world.Event,
        observer: Observer = NOBODY,
    ) -> None:
        self._ceiling = ceiling
        self._observer = observer
        self._places = {endpoint.shard: endpoint.place for endpoint in feed.endpoints()}
        self._needs = feed.session_needs()
        self._wants = self._needs.least
        self._claims = Claims(store, lease.fence, self._places.values())
        self._lease, self._stop = lease, stop
        self._since_us = world.now_us()
        self._looked_at = world.steady_seconds()
        self.now = Held({})

    def begin(self) -> None:
        """Wait for the least that the run needs, of all servers at once."""
        self._wants, told, since_us = self._needs.least, "", world.now_us()
        claims = self._claims.change(self._claimed)
        while not _granted(claims):
            why = why_waiting(self._claims.run, self._claims.seen)
            if why and why != told:
                told = why
                _log.warning("the run %s", why)
                self._observer.doing(why)
            self._has(Held({}, since_us))
            if self._stop.wait(_WAIT_SECONDS):
                raise StoppedWaiting(f"the run was stopped while it {told or 'waited for sessions'}")
            self._lease.check()
            claims = self._if_free()
        if told:
            _log.info("the run has the sessions that it waited for")
        self._take(claims)

    def turn(self, *, idle: bool, groups: int) -> None:
        """A turn of the loop begins. `idle`: no rows are to be copied, else so many `groups` at a time."""
        self._needs = Needs(self._needs.beside, groups)
        wants, now = self._needs.least if idle else self._needs.most, world.steady_seconds()
        if self.now.sessions and wants == self._wants and now - self._looked_at < LOOK_SECONDS:
            return
        self._wants, self._looked_at = wants, now
        claims = self._claims.now()
        mine = [one for one in claims if one.run == self._claims.run]
        if not _granted(mine):
            # It stood still for so long that another run took it for dead.
            self.begin()
        elif sorted(mine, key=lambda one: one.server) != self._claimed(claims):
            self._take(self._claims.change(self._claimed))

    def room(self, shard: str) -> int:
        """So many sessions of a shard's server are there for tasks."""
        return self.now.sessions[shard] - self._needs.beside

    def groups(self, shard: str) -> int:
        """So many groups of chunks of a shard are read at a time."""
        return self._needs.groups_in(self.now.sessions[shard])

    def close(self) -> None:
        """Give all of them back; without a store the claims run out by themselves."""
        with suppress(StateError):
            self._claims.give_back()

    def _claimed(self, claims: Sequence[Claim]) -> list[Claim]:
        """What the run claims, given what all claim: on all servers its least at least, or nothing anywhere."""
        feed, fence = self._claims.run
        found = []
        for server in sorted({*self._places.values()}):
            there = [one for one in claims if one.server == server]
            held = next((one.held for one in there if one.run == self._claims.run), 0)
            least, wants = self._needs.least, self._wants
            mine = Claim(server, feed, fence, held, least, wants, self._ceiling, self._since_us)
            others = [one for one in there if one.run != mine.run]
            found.append(replace(mine, held=self._needs.used_of(may_hold(mine, [*others, mine]))))
        return found if _granted(found) else [replace(one, held=0) for one in found]

    def _if_free(self) -> Sequence[Claim]:
        """What the run has now of what it waits for."""
        if _granted(self._claimed(self._claims.now())):
            return self._claims.change(self._claimed)
        return ()

    def _take(self, claims: Sequence[Claim]) -> None:
        held = {one.server: one.held for one in claims}
        self._has(Held({shard: held[place] for shard, place in self._places.items()}))

    def _has(self, held: Held) -> None:
        if held != self.now:
            self.now = held
            self._observer.held(held)


def _granted(claims: Sequence[Claim]) -> bool:
    """Whether a run holds what it claims, on each server."""
    return bool(claims) and all(one.held for one in claims)


@contextmanager
def sessions_of(
    feed: Feed, store: Store, lease: Lease, stop: world.Event, watch: Watch
) -> Iterator[Sessions | None]:
    """Those of a run in the block, once they can be had; None where the feed file sets no ceiling."""
    ceiling = feed.source.sessions_max
    if ceiling is None:
        yield None
        return
    sessions = Sessions(feed, ceiling, store, lease, stop, watch.observer)
    watch.vitals.registry.register(SessionMetrics(feed.name, ceiling, lambda: sessions.now))
    with closing(sessions):
        sessions.begin()
        yield sessions
