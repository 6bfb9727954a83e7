"""What the state store keeps of orders and verifications: no keys of rows, and no more of them from year to year."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import insert, select

from catchment.model.chunk import Chunk
from catchment.model.errors import StateError
from catchment.model.order import Action, Answer, Kept, Mended, Order
from catchment.model.sample import Sample
from catchment.model.table import TableId
from catchment.state import orders, verifications
from catchment.state.database import journal_table, order_table
from catchment.state.lease import hold
from catchment.state.store import Store
from catchment.state.verifications import (
    BY_COMMAND,
    BY_RUN,
    Scope,
    ScopeTable,
    Stood,
    TableFound,
    Verifications,
)

T, U = TableId("shop", "people"), TableId("shop", "goods")
KEY = "ann@example.org"
DONE = Answer(True, "mended", 7, Mended(missing=1))
START = Order(Action.START, "ada", 1, T)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"sqlite:///{tmp_path}/state.db", "shop")


def to_mend(table: TableId) -> Order:
    return Order(Action.MEND, "ada", 1, table, "a", chunks=(Chunk("a", table, None, (KEY,)),))


def kept(store: Store) -> list[tuple[int, bytes]]:
    with store.database.snapshot() as connection:
        rows = connection.execute(select(order_table.c.number, order_table.c.asked)).all()
    return [(number, bytes(asked)) for number, asked in rows]


def answered(store: Store, fence: int, *asked: Order) -> list[Kept]:
    given = [Kept(orders.give(store, one), one) for one in asked]
    orders.answer(store, tuple(given), tuple(DONE for _ in given), fence)
    return given


def test_an_order_that_is_answered_has_neither_keys_nor_a_feed_file(store: Store) -> None:
    with hold(store) as lease:
        applied = Order(Action.APPLY, "ada", 1, value='{"tables": ["shop.*"]}')
        mend, _, changed = answered(
            store, lease.fence, to_mend(T), applied, Order(Action.SET, "ada", 1, setting="copy.x", value="7")
        )
    assert [(KEY.encode() in asked, b"tables" in asked) for _, asked in kept(store)] == [(False, False)] * 3
    found = orders.find(store, mend.number)
    assert found is not None
    assert (found.answer, str(found.order)) == (DONE, "mend shop.people on a")
    after = orders.find(store, changed.number)
    assert after is not None
    assert str(after.order) == "set copy.x=7", "what a person sees of it stays"


def test_the_newest_thousand_stay_with_those_of_a_day_and_those_that_nobody_has_answered(
    store: Store,
) -> None:
    waits = orders.give(store, to_mend(U))
    day = 86_400 * 1_000_000
    with hold(store) as lease:

        def answer(number: int, at_us: int) -> None:
            given = [Kept(orders.give(store, START), START) for _ in range(number)]
            orders.answer(store, tuple(given), (replace(DONE, answered_us=at_us),) * number, lease.fence)

        answer(1200, day)
        answer(1, 2 * day)
        assert len(kept(store)) == 1202, "whoever gave them all at once finds every answer within a day"
        answer(300, 2 * day + 1)
        assert [number for number, _ in kept(store)] == [waits, *range(312, 1503)]
        answer(200, 2 * day + 2)
    assert [number for number, _ in kept(store)] == [waits, *range(522, 1703)], "more go than come"
    assert [one.number for one in orders.open_orders(store)] == [waits]
    assert orders.give(store, to_mend(T)) == 1703


def test_keys_that_an_earlier_version_left_go(store: Store) -> None:
    old = {"feed": "shop", "asked": msgspec.json.encode(to_mend(T)), "answer": msgspec.json.encode(DONE)}
    with store.database.transaction() as connection:
        connection.execute(insert(order_table), [{**old, "number": number} for number in (1, 2)])
    orders.forget_keys(store, T)
    assert [KEY.encode() in asked for _, asked in kept(store)] == [False, False]
    orders.give(store, to_mend(U))
    orders.forget_keys(store, T)
    orders.give(store, to_mend(T))
    with pytest.raises(StateError, match=r"order 4, to mend shop\.people, is open and has keys of its rows"):
        orders.forget_keys(store, T)


def test_a_verification_that_compares_the_table_begins_again(store: Store) -> None:
    def stood(table: TableId) -> Stood:
        scope = Scope((ScopeTable(table, ("id",), 1),), Sample(100.0, 1))
        found = TableFound(table, 10, 1, 0, 0, (f"{KEY} is missing",))
        return Stood(scope, 1, {}, (found,), (), (1, 2))

    Verifications(store, BY_COMMAND).save(stood(T))
    Verifications(store, BY_RUN).save(stood(U))
    verifications.forget_keys(store, T)
    assert Verifications(store, BY_COMMAND).load(stood(T).scope) is None
    assert Verifications(store, BY_RUN).load(stood(U).scope) == stood(U)
    with store.database.transaction() as connection:
        row = {"feed": "shop", "kind": BY_COMMAND, "record": b'{"of another": "version"}'}
        connection.execute(insert(journal_table).values(**row))
    verifications.forget_keys(store, T)
    with store.database.snapshot() as connection:
        assert [kind for (kind,) in connection.execute(select(journal_table.c.kind))] == [BY_RUN]
