"""The orders of a feed in its state store. Anybody who may open the store gives one; the run answers it."""

from typing import TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, bindparam, func, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError

from catchment.model.errors import StateError
from catchment.model.order import Answer, Kept, Order
from catchment.state.database import lease_table, order_table
from catchment.state.decoders import decoded
from catchment.state.patience import patient
from catchment.state.store import Store

_ATTEMPTS = 20
_LISTED_MAX = 1000
_order = order_table.c
_OPEN = (
    select(_order.number, _order.asked)
    .where(_order.feed == bindparam("of"), _order.answer.is_(None))
    .order_by(_order.number)
)
_lease = lease_table.c
_LOCK = update(lease_table).where(_lease.feed == bindparam("of")).values(fence=_lease.fence)
T = TypeVar("T")


def give(store: Store, order: Order) -> int:
    """Keep an order; its number. Raises StateError, also for a store that no run of this Catchment has opened yet."""
    if order_table.name not in store.database.tables():
        raise StateError(
            f"state store {store.database}: it is of an earlier Catchment; run the feed once with this one"
        )
    for _ in range(_ATTEMPTS):
        try:
            with store.database.transaction() as connection:
                # A write comes first: SQLite gives up at once where a reader wants to write, and others wait here.
                connection.execute(_LOCK, {"of": store.feed})
                newest = select(func.max(_order.number)).where(_order.feed == store.feed)
                number = (connection.scalar(newest) or 0) + 1
                row = {"feed": store.feed, "number": number, "asked": msgspec.json.encode(order)}
                connection.execute(insert(order_table).values(**row))
                return number
        except StateError as fault:
            if not isinstance(fault.__cause__, IntegrityError):
                raise
    raise StateError(f"state store {store.database}: others gave orders {_ATTEMPTS} times first; try again")


@patient
def open_orders(store: Store) -> tuple[Kept, ...]:
    """Those without an answer, in order."""
    with store.database.snapshot() as connection:
        rows = connection.execute(_OPEN, {"of": store.feed}).all()
    return tuple(Kept(number, _read(store, asked, Order)) for number, asked in rows)


@patient
def answer(store: Store, orders: tuple[Kept, ...], answers: tuple[Answer, ...], fence: int) -> None:
    """Answer orders; raises LeaseLost when another runner has taken over."""
    with store.database.transaction() as connection:
        store.guard(connection, fence)
        for kept, given in zip(orders, answers, strict=True):
            mine = (_order.feed == store.feed, _order.number == kept.number)
            connection.execute(update(order_table).where(*mine).values(answer=msgspec.json.encode(given)))


def find(store: Store, number: int) -> Kept | None:
    """An order with its answer; None where there is none of that number."""
    with store.database.snapshot() as connection:
        return next(iter(_listed(connection, store, _order.number == number)), None)


def listed(connection: Connection, store: Store) -> list[Kept]:
    """The newest orders that a transaction sees, the newest first."""
    if not inspect(connection).has_table(order_table.name):
        return []
    return _listed(connection, store)


def _listed(connection: Connection, store: Store, *where: ColumnElement[bool]) -> list[Kept]:
    columns = select(_order.number, _order.asked, _order.answer).where(_order.feed == store.feed, *where)
    rows = connection.execute(columns.order_by(_order.number.desc()).limit(_LISTED_MAX)).all()
    return [
        Kept(number, _read(store, asked, Order), None if given is None else _read(store, given, Answer))
        for number, asked, given in rows
    ]


def _read(store: Store, record: bytes, kind: type[T]) -> T:
    try:
        return decoded(record, kind)
    except msgspec.DecodeError as fault:
        raise StateError(
            f"state store {store.database}: an order of feed {store.feed} cannot be read ({fault})"
        ) from fault
