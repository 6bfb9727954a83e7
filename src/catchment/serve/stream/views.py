"""The snapshots of a shard by which a stream knows what foreign keys do to children.

A view counts for the log from `told` on. In front of that it may have seen an event or not, which as a rule makes no
difference; where it does, another view is opened. One that was asked something is given up as soon as another one
counts, since statements may wait for it.
"""

from typing import Final

from catchment import world
from catchment.model.errors import CatchmentError
from catchment.model.position import LogOffset, reaches
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.rewind.lives import Unfollowed
from catchment.rewind.parents import sides_of
from catchment.rewind.silent import must_be_clear
from catchment.serve.stream.family import Family, acts, log_since, shown_by
from catchment.serve.stream.tables import Known
from catchment.source.view import IDLE_SECONDS, View, opened_view

# A view is replaced once it is so old: while the log goes on, and while it rests.
_SECONDS: Final = 1.0
_REST_SECONDS: Final = 30.0
# So many that count and were asked nothing are held: one for the next turn with an event, one for the turn behind.
_FRESH: Final = 2


class Views:
    """Of one shard; one thread at a time may ask. No view is held where no foreign key changes rows."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._ready: list[View] = []  # the newest is last
        self._next: View | None = None
        # Behind which no key changed rows, up to where the stream stands; None: that is not known.
        self._acted: LogOffset | None = None

    def at(self, state: ShardState, known: Known) -> View | None:
        """A view for the log behind a state of the shard; None where there is none yet. Raises CatchmentError."""
        if not state.keys or state.sealed is None:
            self.close()
            return None
        self._drop_old()
        if self._next is None and self._is_due(state):
            # The floor is proven before the view is opened: what is visible there is visible to it.
            self._next = opened_view(
                self._endpoint, state.position.server, state.sealed, state.position.prepared
            )
        if self._next is not None and reaches(state.position.at, self._next.told):
            view, self._next = self._next, None
            if self._is_clear(view, state, known):
                self._ready.append(view)
                self._drop_old()
        return max(self._ready, key=lambda view: (not view.used, view.since), default=None)

    def told(self, until: LogOffset, *, acted: bool) -> None:
        """The log was told up to a place. `acted`: keys may have changed rows there."""
        if acted:
            self._acted = until

    def close(self) -> None:
        """Let go of all views."""
        for view in (*self._ready, *([self._next] if self._next is not None else [])):
            view.close()
        self._ready, self._next = [], None

    def _drop_old(self) -> None:
        """Let go of views that are not needed, and of such as are in the server's way."""
        now = world.steady_seconds()
        held = [view for view in self._ready if not view.lost and now - view.since <= IDLE_SECONDS]
        fresh = [view for view in held if not view.used][-_FRESH:]
        kept = fresh or held[-1:]
        for view in self._ready:
            if view not in kept:
                view.close()
        self._ready = kept
        if self._next is not None and now - self._next.since > IDLE_SECONDS:
            self._next.close()
            self._next = None

    def _is_due(self, state: ShardState) -> bool:
        fresh = [view for view in self._ready if not view.used]
        if len(fresh) < _FRESH:
            return True
        age = world.steady_seconds() - fresh[-1].since
        return age >= (_REST_SECONDS if state.position.at == fresh[-1].told else _SECONDS)

    def _is_clear(self, view: View, state: ShardState, known: Known) -> bool:
        """Whether it is clear what a view shows; it is closed where it is not."""
        try:
            self._must_be_clear(view, state, known)
        except Unfollowed:
            view.close()
            return False
        except CatchmentError:
            view.close()
            raise
        return True

    def _must_be_clear(self, view: View, state: ShardState, known: Known) -> None:
        if self._acted is not None and reaches(view.floor, self._acted):
            return
        at = state.position.at
        family = Family(
            self._endpoint, state.position, state.keys or (), known.shapes, state.definitions, view, at
        )
        # What the others do is not followed by a view.
        keys = tuple(key for key in family.whole if not key.unfollowed)
        if not keys:
            return
        log = log_since(family, keys, at)
        if not acts(family, log.images, log.torn):
            self._acted = view.floor
            return
        shown = log.shown
        row_keys = {key.child: known.shapes[key.child].key for key in keys}
        sides = sides_of(shown, {table: known.shapes[table].key for table in shown})
        must_be_clear(keys, sides, row_keys, shown_by(family))
