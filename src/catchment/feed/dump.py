"""What an operator asks of a feed: its copies are paused, resumed and begun anew, settings changed, its run ended.

It needs the state store alone. A run obeys within two seconds; without one the order is kept until the next.
"""

import getpass
import os
import socket
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec.structs import replace

from catchment import world
from catchment.config import Feed, load
from catchment.config.another import told
from catchment.config.live import CAN_CHANGE, with_setting
from catchment.model.errors import ConfigError, StateError
from catchment.model.order import COPYING, Action, Kept, Order
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.state import orders
from catchment.state.lease import newest_fence
from catchment.state.store import Store
from catchment.watch.status import read_status
from catchment.watch.table_status import TableStatus

ANSWER_SECONDS = 10.0
# A run settles for some seconds, and asks every shard, before it goes by another feed file.
APPLIED_SECONDS = 60.0
_LOOK_SECONDS = 0.1
FeedFile = Feed | str | Path


def dump(
    feed: FeedFile,
    action: str,
    table: str | TableId | None = None,
    *,
    shard: str = "",
    wait: float = ANSWER_SECONDS,
) -> list[Kept]:
    """Order something of the copy of a table, or of all tables of the feed, on a shard or on all.

    `action`: start, pause, resume or restart. The orders come back, with their answers if a run gives them within
    `wait` seconds.

    Raises ConfigError for another action and for a table that the feed does not have. Raises StateError when the feed
    has never run.
    """
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    meant = next((one for one in COPYING if one.value == action), None)
    if meant is None:
        said = ", ".join(one.value for one in COPYING)
        raise ConfigError(f"dump: expected one of {said}, got {action!r}")
    with _store(known) as store:
        asked = [order(meant, each, shard) for each in _meant(known, store, meant, table)]
        return _given(store, asked, wait)


def skip(feed: FeedFile, shard: str, at: str, *, wait: float = ANSWER_SECONDS) -> Kept:
    """Order that what stands at a place of a shard's log is set aside; `at`: as `binlog.000042:1337`, as the error says
    that names it. The tables that it may have changed are stale then, and copied again.

    Raises ConfigError for what is no place or no shard, StateError when the feed has never run.
    """
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    must_have(known, shard)
    file, _, offset = at.rpartition(":")
    if not (file and offset.isdigit()):
        raise ConfigError(f"--at {at}: expected FILE:OFFSET, as in binlog.000042:1337")
    with _store(known) as store:
        asked = replace(order(Action.SKIP, shard=shard), at=LogOffset(file, int(offset)))
        (kept,) = _given(store, [asked], wait)
        return kept


def stop(feed: FeedFile, *, wait: float = ANSWER_SECONDS) -> Kept:
    """Order the run of a feed to end; it ends in order. Raises StateError when nobody runs it."""
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    with _store(known) as store:
        if not read_status(store).runner:
            raise StateError(f"feed {known.name} is not run by anybody")
        asked = replace(order(Action.STOP), fence=newest_fence(store))
        (kept,) = _given(store, [asked], wait)
        return kept


def set_live(feed: FeedFile, settings: Mapping[str, str], *, wait: float = ANSWER_SECONDS) -> list[Kept]:
    """Order other values of settings of the copy, by their names in the feed file: `{"copy.chunk_time": "200ms"}`.

    They stay in force for later runs, until one begins with another value of that setting in its feed file. Raises
    ConfigError, before anything is ordered, for a setting that cannot change while a feed runs and for a value that it
    cannot have. Raises StateError when the feed has never run.
    """
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    if not settings:
        raise ConfigError(f"set: say which setting and its value, as in copy.chunk_time=200ms; {CAN_CHANGE}")
    for name, value in settings.items():
        with_setting(known, name, value)
    with _store(known) as store:
        asked = [replace(order(Action.SET), setting=name, value=value) for name, value in settings.items()]
        return _given(store, asked, wait)


def apply(feed: FeedFile, leave: Collection[TableId | str] = (), *, wait: float = APPLIED_SECONDS) -> Kept:
    """Order the run of a feed to go by this feed file, without an end. The answer names what changes, and what cannot
    while it runs. `leave`: the tables that leave the feed, which `tables` takes no longer.

    The run is not told of secrets, nor of `state`, `notify` and `spark`. Raises ConfigError for what is no table.
    Raises StateError when nobody runs it: the next run goes by its feed file.
    """
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    try:
        gone = tuple(one if isinstance(one, TableId) else TableId.parse(one) for one in leave)
    except ValueError as fault:
        raise ConfigError(f"leave: {fault}") from None
    with _store(known) as store:
        if not read_status(store).runner:
            raise StateError(f"feed {known.name} is not run by anybody: the next run goes by its feed file")
        asked = replace(order(Action.APPLY), value=told(known), leave=gone)
        (kept,) = _given(store, [asked], wait)
        return kept


def adopt(feed: FeedFile, shard: str, *, copy: bool = False, wait: float = APPLIED_SECONDS) -> Kept:
    """Order the run of a feed to go on with the server that answers for a shard by this feed file, which the run uses
    from then on. `copy`: where the log does not go on there, the shard's tables are copied again.

    Secrets do not reach the run, as with `apply`. Raises ConfigError for a shard that the feed does not have. Raises
    StateError when the feed has never run.
    """
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    must_have(known, shard)
    with _store(known) as store:
        asked = replace(order(Action.ADOPT, shard=shard), value=told(known), copy=copy)
        (kept,) = _given(store, [asked], wait)
        return kept


def tables(feed: FeedFile) -> tuple[TableStatus, ...]:
    """Every table of a feed: where it stands, and why. Raises StateError when the feed has never run."""
    known = feed if isinstance(feed, Feed) else load(feed, secrets=("state",))
    with _store(known) as store:
        return read_status(store).tables


def must_have(feed: Feed, shard: str) -> None:
    """Raise ConfigError unless a feed has a shard."""
    shards = [one.name for one in feed.source.shards]
    if shard not in shards:
        raise ConfigError(f"--shard {shard}: the feed has the shards {', '.join(shards)}")


@contextmanager
def _store(feed: Feed) -> Iterator[Store]:
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        yield store


def order(action: Action, table: TableId | None = None, shard: str = "") -> Order:
    """An order that this process's user gives now."""
    return Order(action, f"{_user()}@{socket.gethostname()}", world.now_us(), table, shard)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have users without names
        return str(os.getuid())


def _meant(feed: Feed, store: Store, action: Action, table: str | TableId | None) -> list[TableId]:
    """The table that is named; without a name all that the order makes sense for. Raises ConfigError."""
    _, manifest, _ = store.newest()
    known = set() if manifest is None else manifest.tables
    if table is not None:
        for one in known:
            if table in (one, str(one)):
                return [one]
        listed = ", ".join(sorted(map(str, known))) or "none"
        raise ConfigError(f"feed {feed.name} carries no table {table}; its tables are {listed}")
    if action is Action.RESTART:
        raise ConfigError("restart: say which table is copied again; one at a time")
    return sorted(known)


def _given(store: Store, asked: list[Order], wait: float) -> list[Kept]:
    numbers = [orders.give(store, one) for one in asked]
    deadline = world.steady_seconds() + wait
    runs = bool(read_status(store).runner)
    while True:
        found = [orders.find(store, number) for number in numbers]
        kept = [one for one in found if one is not None]
        if not runs or all(one.answer is not None for one in kept) or world.steady_seconds() >= deadline:
            return kept
        world.sleep(_LOOK_SECONDS)
