"""The orders of a feed in its state store. Anybody who may open the store gives one; the run answers it.

An order to mend has keys of rows. They go when it is answered. The newest thousand orders stay, and those of a
day.
"""

from typing import TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError

from catchment.model.errors import StateError
from catchment.model.order import Action, Answer, Kept, Order
from catchment.model.table import TableId
from catchment.state.database import lease_table, order_table
from catchment.state.decoders import decoded
from catchment.state.patience import patient
from catchment.state.store import Store

_ATTEMPTS = 20
_LISTED_MAX = 1000
# An answered order beyond these stays for a day. Each answer forgets as many as it answers, and so many more.
_KEPT_US = 86_400 * 1_000_000
_FORGOTTEN_MORE = 10
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
            after = {"asked": msgspec.json.encode(kept.order.done), "answer": msgspec.json.encode(given)}
            connection.execute(update(order_table).where(*mine).values(**after))
        _forget_old(connection, store, orders, answers)


def _forget_old(
    connection: Connection, store: Store, orders: tuple[Kept, ...], answers: tuple[Answer, ...]
) -> None:
    """Delete orders that were answered long before these. Who gave many at once still asks for the answers of all."""
    newest = max((kept.number for kept in orders), default=0)
    before = max((given.answered_us for given in answers), default=0) - _KEPT_US
    answered = (_order.feed == store.feed, _order.answer.is_not(None), _order.number <= newest - _LISTED_MAX)
    found = select(_order.number, _order.answer).where(*answered).order_by(_order.number)
    rows = connection.execute(found.limit(len(orders) + _FORGOTTEN_MORE)).all()
    gone = [number for number, given in rows if _read(store, given, Answer).answered_us < before]
    if gone:
        connection.execute(delete(order_table).where(_order.feed == store.feed, _order.number.in_(gone)))


def forget_keys(store: Store, table: TableId) -> None:
    """Leave no key of a table's rows in orders that are answered: an earlier version kept them. Raises StateError where
    an order to mend the table is open, which a run needs whole."""
    if order_table.name not in store.database.tables():
        return
    with store.database.transaction() as connection:
        connection.execute(_LOCK, {"of": store.feed})
        rows = connection.execute(
            select(_order.number, _order.asked, _order.answer).where(_order.feed == store.feed)
        ).all()
        for number, asked, given in rows:
            kept = _read(store, asked, Order)
            if given is None and kept.action is Action.MEND and kept.table == table:
                raise StateError(
                    f"feed {store.feed}: order {number}, to mend {table}, is open and has keys of its rows; run the "
                    "feed until it is answered, then erase"
                )
            if given is not None and kept != kept.done:
                mine = (_order.feed == store.feed, _order.number == number)
                connection.execute(
                    update(order_table).where(*mine).values(asked=msgspec.json.encode(kept.done))
                )


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
