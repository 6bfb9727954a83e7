"""The subscribers of a feed in its state store, for all servers that share it."""

import msgspec
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from catchment.model.errors import StateError
from catchment.model.subscription import Subscription
from catchment.state.database import subscriber_table
from catchment.state.decoders import decoded
from catchment.state.store import Store

_row = subscriber_table.c


def find(store: Store, name: str) -> Subscription | None:
    """The subscriber of that name; None where there is none."""
    with store.database.snapshot() as connection:
        return _read(connection, store, name)


def add(store: Store, subscription: Subscription) -> bool:
    """Keep a new one; whether it is new."""
    try:
        with store.database.transaction() as connection:
            connection.execute(insert(subscriber_table).values(feed=store.feed, **_columns(subscription)))
    except StateError as fault:
        if isinstance(fault.__cause__, IntegrityError):
            return False
        raise
    return True


def replace(store: Store, before: Subscription, **changes: str | int) -> Subscription | None:
    """Keep it with these changes, and give that; None where another server has changed it since."""
    after = msgspec.structs.replace(before, changes=before.changes + 1, **changes)
    was = (_row.feed == store.feed, _row.name == before.name, _row.changes == before.changes)
    with store.database.transaction() as connection:
        done = connection.execute(update(subscriber_table).where(*was).values(**_columns(after)))
        return after if done.rowcount == 1 else None


def remove(store: Store, name: str) -> bool:
    """Forget one; whether there was one."""
    mine = (_row.feed == store.feed, _row.name == name)
    with store.database.transaction() as connection:
        return connection.execute(delete(subscriber_table).where(*mine)).rowcount == 1


def listed(store: Store) -> list[Subscription]:
    """All of the feed, by name."""
    of_feed = select(_row.record).where(_row.feed == store.feed).order_by(_row.name)
    with store.database.snapshot() as connection:
        return [_decoded(store, record) for record in connection.scalars(of_feed)]


def _read(connection: Connection, store: Store, name: str) -> Subscription | None:
    mine = select(_row.record).where(_row.feed == store.feed, _row.name == name)
    record = connection.scalar(mine)
    return None if record is None else _decoded(store, record)


def _decoded(store: Store, record: bytes) -> Subscription:
    try:
        return decoded(record, Subscription)
    except msgspec.DecodeError as fault:
        raise StateError(
            f"state store {store.database}: a subscriber of feed {store.feed} cannot be read ({fault})"
        ) from fault


def _columns(subscription: Subscription) -> dict[str, str | int | bytes]:
    record = msgspec.json.encode(subscription)
    return {"name": subscription.name, "changes": subscription.changes, "record": record}
