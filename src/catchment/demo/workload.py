"""The demo's data: three tables of different shapes, a loader, and traffic on them.

`orders` has an integer key, `items` a composite key, `people` a string key that the server compares without
regard to case. Loaded values follow from the row's number, so a load is the same each time.
"""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence

from pymysql.cursors import Cursor

from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session, Writer, Writers

KEYS: dict[str, tuple[str, ...]] = {
    "orders": ("id",),
    "items": ("order_id", "sku"),
    "people": ("name",),
}
"""The tables and their primary keys, in key order."""

_TABLES = (
    """CREATE TABLE orders (
        id BIGINT NOT NULL PRIMARY KEY,
        customer VARCHAR(60) NOT NULL,
        amount DECIMAL(12,2) NOT NULL,
        discount DECIMAL(5,4),
        note TEXT,
        status TINYINT UNSIGNED NOT NULL,
        placed_at DATETIME(6) NOT NULL,
        shipped_on DATE
    ) ENGINE=InnoDB CHARACTER SET utf8mb4""",
    """CREATE TABLE items (
        order_id INT NOT NULL,
        sku VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        quantity INT NOT NULL,
        price DECIMAL(10,3),
        label CHAR(12),
        PRIMARY KEY (order_id, sku)
    ) ENGINE=InnoDB CHARACTER SET utf8mb4""",
    """CREATE TABLE people (
        name VARCHAR(60) NOT NULL PRIMARY KEY,
        city VARCHAR(40),
        balance DECIMAL(14,2) NOT NULL,
        rating DOUBLE,
        seen_at DATETIME(6)
    ) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci""",
)

# `n` numbers the rows of one shard, `k` those of all shards
_LOADS = {
    "orders": """INSERT INTO orders SELECT k, CONCAT('customer ', n % 9973), (n * 7919 % 1000000) / 100,
        IF(n % 3 = 0, NULL, (n % 10000) / 10000), IF(n % 4 = 0, NULL, REPEAT(MD5(n), 1 + n % 3)), n % 7,
        '2026-01-01' + INTERVAL n * 1000003 MICROSECOND,
        IF(n % 2 = 0, NULL, DATE('2026-01-01') + INTERVAL n % 300 DAY) FROM ({numbers}) AS numbers""",
    "items": """INSERT INTO items SELECT k, CONCAT('sku-', n % 1000), n % 50,
        IF(n % 5 = 0, NULL, n % 9999 / 8), LEFT(MD5(n), 12) FROM ({numbers}) AS numbers""",
    "people": """INSERT INTO people SELECT CONCAT(ELT(1 + n % 4, 'Ada', 'Émile', 'jürgen', '李'), ' ', k),
        IF(n % 6 = 0, NULL, CONCAT('city ', n % 200)), n % 100000 / 100, IF(n % 5 = 0, NULL, n / 7),
        '2026-01-01' + INTERVAL n SECOND FROM ({numbers}) AS numbers""",
}


def create_tables(server: PrivateServer, schema: str) -> None:
    """Make the schema if it is missing, and the three tables in it."""
    server.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
    server.sql(*_TABLES, database=schema)


def load(
    server: PrivateServer,
    schema: str,
    rows: int,
    *,
    index: int = 0,
    count: int = 1,
    batch: int = 20_000,
    loaded: Callable[[int], None] | None = None,
) -> int:
    """Load `rows` rows into each table of shard `index` of `count` shards; returns how many in all.

    Row n has the key n * count + index: no key is on two shards. One transaction per `batch` rows; It calls `loaded`
    with the size of each.
    """
    total = 0
    for statement in _LOADS.values():
        for first in range(1, rows + 1, batch):
            last = min(rows, first + batch - 1)
            numbers = f"SELECT seq AS n, seq * {count} + {index} AS k FROM seq_{first}_to_{last}"
            server.sql(statement.format(numbers=numbers), database=schema)
            total += last - first + 1
            if loaded:
                loaded(last - first + 1)
    return total


class Traffic:
    """One writer's transactions on a loaded shard: one to four small changes each, on all three tables.

    New keys are numbered above the `rows` loaded ones, every `stride`-th from `offset`, so that writers of
    one shard never clash.
    """

    def __init__(self, rows: int, *, index: int, count: int, offset: int, stride: int) -> None:
        self._rows = rows
        self._index = index
        self._count = count
        self._fresh: Iterator[int] = (n * count + index for n in itertools.count(rows + 1 + offset, stride))
        self._changes = (self._insert, self._update, self._delete, self._change_key)

    def __call__(self, sessions: Sequence[Session], rng: random.Random) -> int:
        """Run one transaction on the first session; returns the number of rows changed."""
        session = sessions[0]
        changed = 0
        with session.cursor() as cursor:
            session.begin()
            for change in rng.choices(self._changes, (4, 6, 2, 1), k=rng.randint(1, 4)):
                changed += change(cursor, rng)
            session.commit()
        return changed

    def _key(self, rng: random.Random) -> int:
        return rng.randint(1, self._rows) * self._count + self._index

    def _insert(self, cursor: Cursor, rng: random.Random) -> int:
        key = next(self._fresh)
        changed = cursor.execute(
            "INSERT INTO orders VALUES (%s, %s, %s, NULL, %s, 0, NOW(6), NULL)",
            (key, f"customer {rng.randrange(9973)}", rng.randrange(10**6) / 100, f"order {key}"),
        )
        lines = [
            (key, f"sku-{n}", rng.randint(1, 9), rng.randrange(10**5) / 8) for n in range(rng.randint(1, 3))
        ]
        changed += cursor.executemany("INSERT INTO items VALUES (%s, %s, %s, %s, NULL)", lines) or 0
        return changed + cursor.execute(
            "INSERT INTO people VALUES (%s, 'new', 0, NULL, NOW(6))", (f"Guest {key}",)
        )

    def _update(self, cursor: Cursor, rng: random.Random) -> int:
        keys = [self._key(rng) for _ in range(3)]
        changed = cursor.execute(
            "UPDATE orders SET status = (status + 1) %% 7, amount = amount + 1 WHERE id IN (%s, %s, %s)", keys
        )
        changed += cursor.execute("UPDATE items SET quantity = quantity + 1 WHERE order_id = %s", (keys[0],))
        return changed + cursor.execute(
            "UPDATE people SET balance = balance + 0.5, seen_at = NOW(6) WHERE name = %s", (f"Ada {keys[1]}",)
        )

    def _delete(self, cursor: Cursor, rng: random.Random) -> int:
        key = self._key(rng)
        changed = cursor.execute("DELETE FROM items WHERE order_id = %s", (key,))
        return changed + cursor.execute("DELETE FROM orders WHERE id = %s", (key,))

    def _change_key(self, cursor: Cursor, rng: random.Random) -> int:
        old, new = self._key(rng), next(self._fresh)
        changed = cursor.execute("UPDATE orders SET id = %s WHERE id = %s", (new, old))
        changed += cursor.execute("UPDATE items SET order_id = %s WHERE order_id = %s", (new, old))
        return changed + cursor.execute(
            "UPDATE people SET name = UPPER(name) WHERE name = %s", (f"ada {old}",)
        )


def steady_writers(
    servers: Sequence[PrivateServer], schema: str, rows: int, *, per_shard: int = 2, rate: float = 50.0
) -> Writers:
    """Writers for loaded shards, not yet started; `rate` is transactions per second and writer."""
    writers = []
    for index, server in enumerate(servers):
        for offset in range(per_shard):
            traffic = Traffic(rows, index=index, count=len(servers), offset=offset, stride=per_shard)
            connect = _connector(server, schema)
            writers.append(Writer([connect], traffic, seed=index * per_shard + offset, rate=rate))
    return Writers(writers)


def _connector(server: PrivateServer, schema: str) -> Callable[[], Session]:
    return lambda: server.connect(database=schema)
