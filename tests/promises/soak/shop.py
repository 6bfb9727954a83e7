"""A shop on several shards: customers, what they ordered, vouchers and articles, and the transactions of its visitors.

Orders and their lines go with their customer, a voucher forgets its own: on MariaDB, and on MySQL before 9.6, no log
has these rows.
"""

import random
from collections.abc import Sequence
from typing import Any

from catchment.demo.writers import Session
from tests.promises.storm.replay import Replay
from tests.world.canonical import Key
from tests.world.log_groups import Change, Done, Place

CUSTOMERS = 150
ARTICLES = 40
_ORDERS_EACH, _LINES_EACH = 3, 4
MADE = (
    "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40), seen INT)",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, total INT,"
    " FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE)",
    "CREATE TABLE parts (purchase INT, part INT, article INT, amount INT, PRIMARY KEY (purchase, part),"
    " FOREIGN KEY (purchase) REFERENCES orders (id) ON DELETE CASCADE)",
    "CREATE TABLE vouchers (id INT PRIMARY KEY, customer INT, value INT,"
    " FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE SET NULL)",
    "CREATE TABLE articles (id INT PRIMARY KEY, name VARCHAR(40), price INT)",
)
KEYS: dict[str, tuple[str, ...]] = {
    "customers": ("id",),
    "orders": ("id",),
    "parts": ("purchase", "part"),
    "vouchers": ("id",),
    "articles": ("id",),
}
# Of a parent: the child, its column, and whether its rows go or forget.
_KEYS_OF_PARENTS = {
    "customers": (("orders", "customer", True), ("vouchers", "customer", False)),
    "orders": (("parts", "purchase", True),),
}


def _come(cursor: Any, customer: int, rng: random.Random) -> int:
    rows = cursor.execute(
        "INSERT IGNORE INTO customers (id, name, seen) VALUES (%s, %s, 0)", (customer, "new")
    )
    known = "SELECT id FROM customers WHERE id = %s"
    for number in range(rng.randint(1, _ORDERS_EACH)):
        order = customer * 10 + number
        rows += cursor.execute(
            f"INSERT IGNORE INTO orders (id, customer, total) SELECT %s, id, 0 FROM ({known}) AS k",
            (order, customer),
        )
        for part in range(rng.randint(1, _LINES_EACH)):
            rows += cursor.execute(
                "INSERT IGNORE INTO parts (purchase, part, article, amount)"
                " SELECT id, %s, %s, 1 FROM orders WHERE id = %s",
                (part, rng.randint(1, ARTICLES), order),
            )
    rows += cursor.execute(
        f"INSERT IGNORE INTO vouchers (id, customer, value) SELECT %s, id, 5 FROM ({known}) AS k",
        (customer, customer),
    )
    return int(rows)


def _go(cursor: Any, customer: int, rng: random.Random) -> int:
    return int(cursor.execute("DELETE FROM customers WHERE id = %s", (customer,)))


def _order(cursor: Any, customer: int, rng: random.Random) -> int:
    rows = cursor.execute(
        "UPDATE parts SET amount = amount + 1 WHERE purchase BETWEEN %s AND %s",
        (customer * 10, customer * 10 + 9),
    )
    rows += cursor.execute("UPDATE orders SET total = total + 1 WHERE customer = %s", (customer,))
    return int(rows + cursor.execute("UPDATE customers SET seen = seen + 1 WHERE id = %s", (customer,)))


def _price(cursor: Any, customer: int, rng: random.Random) -> int:
    return int(
        cursor.execute(
            "REPLACE INTO articles (id, name, price) VALUES (%s, 'article', %s)",
            (rng.randint(1, ARTICLES), rng.randint(1, 100)),
        )
    )


def _redeem(cursor: Any, customer: int, rng: random.Random) -> int:
    return int(cursor.execute("DELETE FROM vouchers WHERE customer IS NULL OR id = %s", (customer,)))


_VISITS = (_come, _come, _go, _order, _order, _order, _price, _redeem)


def visit(sessions: Sequence[Session], rng: random.Random) -> int:
    """One transaction of a visitor; one in ten is undone."""
    (session,) = sessions
    session.begin()
    with session.cursor() as cursor:
        rows = rng.choice(_VISITS)(cursor, rng.randint(1, CUSTOMERS), rng)
    if rng.random() < 0.1:
        session.rollback()
        return 0
    session.commit()
    return rows


def filled(session: Session, rng: random.Random) -> None:
    """Rows of before the feed."""
    with session.cursor() as cursor:
        for customer in range(1, CUSTOMERS, 2):
            _come(cursor, customer, rng)
        for _ in range(ARTICLES):
            _price(cursor, 0, rng)


class ShopReplay(Replay):
    """The shop's tables by its log, and by what its foreign keys do, of which the log has nothing."""

    def _apply(self, done: Done, end: Place) -> None:
        if not isinstance(done, list):
            super()._apply(done, end)
            return
        for change in done:
            super()._apply([change], end)
            self._cascade(change)

    def _cascade(self, change: Change) -> None:
        schema, _, parent = change.table.partition(".")
        if change.before is None or change.after is not None or parent not in _KEYS_OF_PARENTS:
            return
        gone = change.before["id"]
        for child, column, goes in _KEYS_OF_PARENTS[parent]:
            rows = self.state[f"{schema}.{child}"]
            of_parent: list[Key] = [key for key, row in rows.items() if row[column] == gone]
            for key in of_parent:
                if goes:
                    self._cascade(Change(f"{schema}.{child}", rows.pop(key), None))
                else:
                    rows[key][column] = None
