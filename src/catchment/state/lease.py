"""One runner per feed: a lease with a fence number that only grows (DESIGN 5).

No wall clock is compared. A holder is alive as long as its row's renewal count moves. A waiter takes over when its own
steady clock has seen the count stand still for the length of the lease. A holder on this host whose process is gone is
replaced at once. So is one that ends in order, by a runner that stands by.
"""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from sqlalchemy import Connection, Update, insert, update
from sqlalchemy.exc import IntegrityError

from catchment import world
from catchment.model.errors import LeaseHeld, LeaseLost, StateError, StoppedWaiting
from catchment.state.database import lease_table
from catchment.state.decoders import decoded
from catchment.state.journal import give_sign_of_life
from catchment.state.patience import until_there
from catchment.state.statements import LEASE, RAISE, RELEASE, RENEW
from catchment.state.store import Store

LEASE_SECONDS = 10.0
_RENEW_SECONDS = 2.0
_WATCH_SECONDS = 0.2


class Owner(msgspec.Struct, frozen=True):
    """A process. `host` tells machine, boot and process namespace apart. `started` is its start in clock ticks since
    boot, so that a process number used again is not taken for it."""

    host: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition('/')[0]}"

    @classmethod
    def this_process(cls) -> "Owner":
        """The running process."""
        return cls(_host(), os.getpid(), _started(os.getpid()) or 0)

    def is_dead(self) -> bool:
        """True when it ran on this host and does not any more; False when it runs or we cannot know."""
        return self.started > 0 and self.host == _host() and _started(self.pid) != self.started


class _Row(msgspec.Struct, frozen=True):
    """The lease as it stands in the store; without owner it is free."""

    fence: int
    owner: Owner | None
    renewals: int


class Lease:
    """A held lease; made by `hold`. `fence` goes into every write to the store and to the sink."""

    def __init__(self, store: Store, fence: int, renewed_at: float) -> None:
        self.fence = fence
        self._store = store
        self._renewed_at = renewed_at
        self._lost = world.event()
        self._ended = world.event()
        self._lock = world.lock()  # of `fence` and the row that has it
        self._thread = world.thread("lease", self._keep_renewing)
        self._thread.start()

    @property
    def lost(self) -> bool:
        """True once another runner took over, or when no renewal went through for the length of the lease."""
        return self._lost.is_set() or world.steady_seconds() - self._renewed_at > LEASE_SECONDS

    def check(self) -> None:
        """Call before anything that cannot be taken back; raises LeaseLost or StateError.

        After a pause longer than the lease (a frozen process, a store that was away) it asks the store before going
        on, and waits for it as the store's patience says: nobody can take the lease without the store either.
        """
        if self.lost:
            until_there(self._renew, self._store.patience)

    def raise_fence(self) -> None:
        """Go on with the next fence, and keep the lease meanwhile: what began under this one writes no more. Raises
        LeaseLost or StateError."""
        until_there(self._raise, self._store.patience)

    def release(self) -> None:
        """Give the lease back, so that a later runner need not wait; without a store it runs out by
        itself."""
        self._ended.set()
        self._thread.join()
        with suppress(StateError):
            self._update(RELEASE)

    def _keep_renewing(self) -> None:
        while not self._ended.wait(_RENEW_SECONDS):
            try:
                self._renew()
            except LeaseLost:
                return
            except StateError:
                continue  # `lost` turns true when this lasts as long as the lease

    def _renew(self) -> None:
        with self._lock:
            self._change(RENEW)

    def _raise(self) -> None:
        """The commit of a try that failed may have reached the store: then the row has the next fence already."""
        with self._lock:
            above = self.fence + 1
            self._change(RAISE, above=above, mine=_written(Owner.this_process()))
            self.fence = above

    def _change(self, change: Update, **more: object) -> None:
        asked_at = world.steady_seconds()  # before asking the store: a waiter's clock starts later
        if not self._update(change, **more):
            self._lost.set()
            raise LeaseLost(f"feed {self._store.feed}: another runner took over (our fence was {self.fence})")
        self._renewed_at = asked_at

    def _update(self, change: Update, **more: object) -> bool:
        """Change the row if it is still ours, which is a sign of life, too."""
        named = {"of": self._store.feed, "held": self.fence, **more}
        with self._store.database.transaction() as connection:
            held = connection.execute(change, named).rowcount == 1
            if held:
                give_sign_of_life(connection, self._store.feed)
            return held


@dataclass(frozen=True, slots=True)
class Standby:
    """A runner that waits until nobody else holds the feed. `stop` ends it; `told` hears who holds the feed."""

    stop: world.Event
    told: Callable[[str], None]


@contextmanager
def hold(store: Store, *, fence_above: int = 0, standby: Standby | None = None) -> Iterator[Lease]:
    """Acquire the lease and release it at the end of the block.

    `fence_above` is the highest fence the sink has seen: a store that was deleted must not start again below
    it. Raises LeaseHeld naming the holder when it is alive; waits up to LEASE_SECONDS for one that cannot be
    asked. A `standby` waits until the holder has ended, and raises StoppedWaiting when it is stopped.
    """
    lease = _acquire(store, fence_above) if standby is None else _awaited(store, fence_above, standby)
    try:
        yield lease
    finally:
        lease.release()


def holder(store: Store) -> Owner | None:
    """Who holds the lease (or died with it), None when it is free; raises StateError."""
    with store.database.transaction() as connection:
        return holder_in(connection, store)


def holder_in(connection: Connection, store: Store) -> Owner | None:
    """The holder that a transaction sees."""
    row = _read_in(connection, store)
    return None if row is None else row.owner


def newest_fence(store: Store) -> int:
    """The fence of whoever holds the lease or held it last, 0 before the first."""
    row = _read(store)
    return 0 if row is None else row.fence


def _awaited(store: Store, fence_above: int, standby: Standby) -> Lease:
    while True:
        try:
            return _acquire(store, fence_above)
        except LeaseHeld as held:
            standby.told(f"standing by: {held}")
            if standby.stop.wait(_RENEW_SECONDS):
                raise StoppedWaiting(f"feed {store.feed}: the run was stopped while it stood by") from held


def _acquire(store: Store, fence_above: int) -> Lease:
    row = _read(store)
    since = world.steady_seconds()
    while row is not None and _may_live(row) and world.steady_seconds() - since < LEASE_SECONDS:
        world.sleep(_WATCH_SECONDS)
        seen, row = row, _read(store)
        if row is not None and row != seen and _may_live(row):
            raise LeaseHeld(f"feed {store.feed} is run by {row.owner}; end that runner first")
    taken_at = world.steady_seconds()
    fence = max(row.fence if row else 0, fence_above) + 1
    if not _take(store, row, fence):
        raise LeaseHeld(f"feed {store.feed}: another runner started at the same moment and was first")
    return Lease(store, fence, taken_at)


def _may_live(row: _Row) -> bool:
    return row.owner is not None and not row.owner.is_dead()


def _read(store: Store) -> _Row | None:
    with store.database.transaction() as connection:
        return _read_in(connection, store)


def _read_in(connection: Connection, store: Store) -> _Row | None:
    found = connection.execute(LEASE, {"of": store.feed}).one_or_none()
    if found is None:
        return None
    try:
        owner = decoded(found.owner, Owner) if found.owner else None
    except msgspec.DecodeError as fault:
        raise StateError(
            f"state store {store.database}: the lease of feed {store.feed} is damaged"
        ) from fault
    return _Row(found.fence, owner, found.renewals)


def _take(store: Store, seen: _Row | None, fence: int) -> bool:
    """Compare and swap: False when the row is not the one that was seen any more."""
    lease = lease_table.c
    mine = {"fence": fence, "owner": _written(Owner.this_process()), "renewals": 0}
    try:
        with store.database.transaction() as connection:
            if seen is None:
                connection.execute(insert(lease_table).values(feed=store.feed, **mine))
                return True
            same = (lease.feed == store.feed, lease.fence == seen.fence, lease.renewals == seen.renewals)
            return connection.execute(update(lease_table).where(*same).values(**mine)).rowcount == 1
    except StateError as fault:
        if isinstance(fault.__cause__, IntegrityError):  # the other runner's row came first
            return False
        raise


def _written(owner: Owner) -> str:
    return msgspec.json.encode(owner).decode()


def _host() -> str:
    """This machine, boot and process namespace; two containers share a boot but no process numbers."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:  # no Linux: processes cannot be told apart, holders are waited for
        boot, namespace = "", str(os.getpid())
    return f"{socket.gethostname()}/{boot}/{namespace}"


def _started(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot (proc(5), field 22 of stat); None without
    one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in field 2 may hold spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])
