"""Random transactions for the exactness tests: everything that makes a row log hard to follow.

Tables are the demo's. Keys are drawn from a small space, the same on both shards, so that keys clash, come
back after a delete and stand on both shards at once. One seed gives one writer's choices; what the server
makes of several writers at once differs from run to run.
"""

import random
from collections.abc import Callable, Sequence

from pymysql.cursors import Cursor
from pymysql.err import IntegrityError, OperationalError

from catchment.demo.server import PrivateServer
from catchment.demo.workload import KEYS, create_tables
from catchment.demo.writers import Session, Writer, Writers
from tests.world.patience import until
from tests.world.rows import SKUS, SPELLINGS, item, order, person

__all__ = [
    "KEYS",
    "MoveBetweenShards",
    "RandomTransactions",
    "XaTransactions",
    "create_random_tables",
    "random_writers",
    "touch_temporary_table",
]

# every statement names its columns, so that tests may add others
_COLUMNS = {
    "orders": "id, customer, amount, discount, note, status, placed_at, shipped_on",
    "items": "order_id, sku, quantity, price, label",
    "people": "name, city, balance, rating, seen_at",
}

# each changes rows of a table that the statement does not name
_TRIGGERS = (
    """CREATE TRIGGER orders_paid AFTER UPDATE ON orders FOR EACH ROW
        INSERT INTO people (name, balance, seen_at) VALUES (CONCAT('payer ', NEW.id % 20), 1, NEW.placed_at)
        ON DUPLICATE KEY UPDATE balance = balance + 1, seen_at = NEW.placed_at""",
    """CREATE TRIGGER orders_gone BEFORE DELETE ON orders FOR EACH ROW
        UPDATE people SET balance = balance + 1 WHERE name = CONCAT('ada ', OLD.id)""",
)

_XA_UNKNOWN, _XA_ROLLED_BACK = 1397, 1402
# Deadlock, waits, duplicate key; rolled back for these; the XID's last session has not quite gone.
_XA_CLASHES = (1213, 1205, 1062, 1402, 1613, 1614, 1440)
_NOT_SHOWN = 3854  # MySQL 9.7: another session's statement has characters that the processlist cannot show
Step = Callable[[Cursor, random.Random], int]


def create_random_tables(servers: Sequence[PrivateServer], schema: str) -> None:
    """Make the three tables and their triggers in `schema` on every server."""
    for server in servers:
        create_tables(server, schema)
        server.sql(*_TRIGGERS, database=schema)


class RandomTransactions:
    """One random transaction per call, of 1 to 6 steps, on the first session; one in seven is rolled back."""

    def __init__(self, keys: int = 200) -> None:
        self._keys = keys
        self._savepoints = 0  # open around the step that runs
        self._steps: tuple[Step, ...] = (
            self._insert_many,
            self._update,
            self._update_range,
            self._change_key,
            self._respell,
            self._delete,
            self._delete_and_insert_again,
            self._replace,
            self._upsert,
            self._update_two_tables,
            self._delete_range,
            self.undo_to_savepoint,
        )

    def __call__(self, sessions: Sequence[Session], rng: random.Random) -> int:
        """Run one transaction; returns the number of rows that the server says were changed."""
        session = sessions[0]
        self._savepoints = 0
        with session.cursor() as cursor:
            session.begin()
            changed = self._some_steps(cursor, rng, 6)
            if rng.random() < 1 / 7:
                if rng.random() < 0.5:
                    touch_temporary_table(cursor)  # then the group stands in the log, and ends in ROLLBACK
                session.rollback()
                return 0
            session.commit()
        return changed

    def single_rows(self, cursor: Cursor, rng: random.Random) -> int:
        """A few changes that lock few rows."""
        steps = (self._update, self._change_key, self._delete, self._delete_and_insert_again)
        return sum(rng.choice(steps)(cursor, rng) for _ in range(rng.randint(1, 2)))

    def undo_to_savepoint(self, cursor: Cursor, rng: random.Random, undone: Step | None = None) -> int:
        """Undo some steps in a way that leaves their rows in the log.

        MariaDB drops undone rows from its cache, unless the transaction has touched a temporary table since
        the savepoint; then it logs the rows and `ROLLBACK TO`. Names are used again, nest, and are the same
        in either case.
        """
        changed = self._insert_many(cursor, rng) if undone is None else undone(cursor, rng)
        self._savepoints += 1
        name = f"save {self._savepoints}"
        cursor.execute(f"SAVEPOINT `{name}`")
        if undone is None:
            self._some_steps(cursor, rng, 3)
        else:
            undone(cursor, rng)
        if rng.random() < 0.8:
            touch_temporary_table(cursor)
        cursor.execute(f"ROLLBACK TO `{rng.choice((name, name.upper()))}`")
        if rng.random() < 0.3:
            cursor.execute(f"RELEASE SAVEPOINT `{name}`")
        self._savepoints -= 1
        return changed + self._update(cursor, rng)

    def _some_steps(self, cursor: Cursor, rng: random.Random, most: int) -> int:
        return sum(rng.choice(self._steps)(cursor, rng) for _ in range(rng.randint(1, most)))

    def _insert_many(self, cursor: Cursor, rng: random.Random) -> int:
        changed = 0
        for table in rng.sample(list(KEYS), rng.randint(1, 3)):
            rows = [self._row(table, rng) for _ in range(rng.randint(1, 8))]
            changed += _write(cursor, "INSERT IGNORE INTO", table, rows)
        return changed

    def _replace(self, cursor: Cursor, rng: random.Random) -> int:
        table = rng.choice(list(KEYS))
        return _write(
            cursor, "REPLACE INTO", table, [self._row(table, rng) for _ in range(rng.randint(1, 4))]
        )

    def _upsert(self, cursor: Cursor, rng: random.Random) -> int:
        rows = [self._row("orders", rng) for _ in range(rng.randint(1, 4))]
        return _write(
            cursor,
            "INSERT INTO",
            "orders",
            rows,
            "ON DUPLICATE KEY UPDATE amount = amount + 1, note = VALUES(note)",
        )

    def _update(self, cursor: Cursor, rng: random.Random) -> int:
        """Single rows; to NULL and back."""
        row = self._row("orders", rng)
        changed = cursor.execute(
            "UPDATE orders SET amount = %s, discount = %s, note = %s, placed_at = %s WHERE id = %s",
            (row[2], row[3], row[4], row[6], row[0]),
        )
        human = self._row("people", rng)
        return changed + cursor.execute(
            "UPDATE people SET city = %s, rating = %s WHERE name = %s", (human[1], human[3], human[0])
        )

    def _update_range(self, cursor: Cursor, rng: random.Random) -> int:
        low = self._id(rng)
        return cursor.execute(
            "UPDATE items SET quantity = quantity + 1, price = -price WHERE order_id BETWEEN %s AND %s",
            (low, low + self._keys // 10),
        )

    def _change_key(self, cursor: Cursor, rng: random.Random) -> int:
        old, new = self._id(rng), self._id(rng)
        changed = cursor.execute("UPDATE IGNORE orders SET id = %s WHERE id = %s", (new, old))
        changed += cursor.execute(
            "UPDATE IGNORE items SET order_id = %s, sku = %s WHERE order_id = %s LIMIT 1",
            (new, rng.choice(SKUS), old),
        )
        return changed + cursor.execute(
            "UPDATE IGNORE people SET name = %s WHERE name = %s", (self._name(rng), self._name(rng))
        )

    def _respell(self, cursor: Cursor, rng: random.Random) -> int:
        """Change a key into one that the server takes for the same."""
        name = self._name(rng)
        return cursor.execute("UPDATE people SET name = UPPER(name) WHERE name = %s", (name,))

    def _delete(self, cursor: Cursor, rng: random.Random) -> int:
        changed = cursor.execute("DELETE FROM orders WHERE id = %s", (self._id(rng),))
        changed += cursor.execute("DELETE FROM items WHERE order_id = %s LIMIT 2", (self._id(rng),))
        return changed + cursor.execute("DELETE FROM people WHERE name = %s", (self._name(rng),))

    def _delete_range(self, cursor: Cursor, rng: random.Random) -> int:
        low = self._id(rng)
        return cursor.execute("DELETE FROM orders WHERE id BETWEEN %s AND %s", (low, low + self._keys // 40))

    def _delete_and_insert_again(self, cursor: Cursor, rng: random.Random) -> int:
        row = self._row("orders", rng)
        changed = cursor.execute("DELETE FROM orders WHERE id = %s", (row[0],))
        return changed + _write(cursor, "INSERT INTO", "orders", [row])

    def _update_two_tables(self, cursor: Cursor, rng: random.Random) -> int:
        low = self._id(rng)
        return cursor.execute(
            "UPDATE orders JOIN items ON items.order_id = orders.id"
            " SET orders.status = (orders.status + 1) %% 7, items.label = 'joint'"
            " WHERE orders.id BETWEEN %s AND %s",
            (low, low + self._keys // 20),
        )

    def _id(self, rng: random.Random) -> int:
        return rng.randint(1, self._keys)

    def _name(self, rng: random.Random) -> str:
        return rng.choice(SPELLINGS).format(self._id(rng))

    def _row(self, table: str, rng: random.Random) -> tuple[object, ...]:
        if table == "orders":
            return order(self._id(rng), rng)
        if table == "items":
            return item(self._id(rng), rng)
        return person(self._name(rng), rng)


class XaTransactions:
    """XA transactions on one shard: prepared in a session that then ends, and committed or rolled back by another
    one, at once or some transactions later. Few XIDs, so that they come again.
    """

    def __init__(self, connect: Callable[[], Session], keys: int = 200, names: int = 3) -> None:
        self._connect = connect
        self._rows = RandomTransactions(keys)
        self._free = [f"X'{n:02x}ff27',X'{n:02x}',{n + 1}" for n in range(names)]
        self._open: list[str] = []
        self._preparer: dict[str, int] = {}
        self.committed = 0
        self.rolled_back = 0

    def __call__(self, sessions: Sequence[Session], rng: random.Random) -> int:
        """Prepare one transaction, or end one; returns the number of rows changed."""
        if self._free and (not self._open or rng.random() < 0.5):
            changed = self._prepare(self._free.pop(0), rng)
            if rng.random() < 0.7:
                return changed
        self._end(sessions[0], self._open.pop(rng.randrange(len(self._open))) if self._open else None, rng)
        return 0

    def _prepare(self, xid: str, rng: random.Random) -> int:
        session = self._connect()
        prepared = False
        try:
            with session.cursor() as cursor:
                cursor.execute(f"XA START {xid}")
                changed = self._rows.single_rows(cursor, rng)
                if rng.random() < 0.4:
                    changed += self._rows.undo_to_savepoint(cursor, rng, self._rows.single_rows)
                cursor.execute(f"XA END {xid}")
                cursor.execute(f"XA PREPARE {xid}")
                prepared = True
        except (OperationalError, IntegrityError) as error:
            if error.args[0] not in _XA_CLASHES:
                raise
            return 0
        finally:
            (self._open if prepared else self._free).append(xid)
            self._preparer[xid] = session.thread_id()  # type: ignore[no-untyped-call]
            session.close()
        return changed

    def _end(self, session: Session, xid: str | None, rng: random.Random) -> None:
        if xid is None:
            return
        commits = rng.random() < 0.75
        with session.cursor() as cursor:
            self._await_end(cursor, self._preparer[xid])
            until(
                f"{xid} is prepared",
                lambda: _ended(cursor, f"XA {'COMMIT' if commits else 'ROLLBACK'} {xid}"),
            )
        self.committed += commits
        self.rolled_back += not commits
        self._free.append(xid)

    def _await_end(self, cursor: Cursor, session: int) -> None:
        """Wait until the session that prepared is wholly gone.

        While it goes, XA COMMIT may be answered with OK and logged, and the engine keeps the transaction prepared,
        in no XA RECOVER (seen on MySQL 8.0.15, once in 406 commits on a busy machine, and on MariaDB 10.11.19,
        once in 361); an XID used again then commits the old rows.
        """
        until(f"session {session} ends", lambda: not _lives(cursor, session), every=0.002)


def _ended(cursor: Cursor, statement: str) -> bool:
    """Whether the statement has ended an XA transaction; False while the server does not know the XID yet."""
    try:
        cursor.execute(statement)
    except OperationalError as error:
        if error.args[0] == _XA_ROLLED_BACK:  # it changed nothing, and its session has ended
            return True
        if error.args[0] != _XA_UNKNOWN:
            raise
        return False
    return True


def _lives(cursor: Cursor, session: int) -> bool:
    try:
        return bool(cursor.execute("SELECT 1 FROM information_schema.processlist WHERE id = %s", (session,)))
    except OperationalError as error:
        if error.args[0] != _NOT_SHOWN:
            raise
        return True


class MoveBetweenShards:
    """Moves one order from a session's shard to the other's: two transactions, committed in either order."""

    def __init__(self, keys: int = 200) -> None:
        self._keys = keys

    def __call__(self, sessions: Sequence[Session], rng: random.Random) -> int:
        """Move the first order from a random key on, if there is one; returns the number of rows changed."""
        source, target = rng.sample(list(sessions), 2)
        source.begin()
        target.begin()
        with source.cursor() as reader, target.cursor() as writer:
            reader.execute(
                f"SELECT {_COLUMNS['orders']} FROM orders WHERE id >= %s ORDER BY id LIMIT 1 FOR UPDATE",
                (rng.randint(1, self._keys),),
            )
            row = reader.fetchone()
            if row is None:
                source.rollback()
                target.rollback()
                return 0
            reader.execute("DELETE FROM orders WHERE id = %s", (row[0],))
            _write(writer, "REPLACE INTO", "orders", [row])
        for session in rng.sample([source, target], 2):
            session.commit()
        return 2


def random_writers(
    servers: Sequence[PrivateServer],
    schema: str,
    *,
    seed: int,
    per_shard: int = 2,
    rate: float | None = 40.0,
    keys: int = 200,
    reconnect: bool = False,
) -> Writers:
    """Writers of random transactions for every shard and, with two shards or more, one that moves rows.

    Not yet started; `rate` is transactions per second and writer (None: unlimited), `keys` the size of the
    key space.
    """
    connects = [_connector(server, schema) for server in servers]
    writers = [
        Writer(
            [connect],
            RandomTransactions(keys),
            seed=seed * 1000 + number * per_shard + n,
            rate=rate,
            reconnect=reconnect,
        )
        for number, connect in enumerate(connects)
        for n in range(per_shard)
    ]
    if len(connects) > 1:
        move = MoveBetweenShards(keys)
        writers.append(Writer(connects, move, seed=seed * 1000 + 999, rate=rate, reconnect=reconnect))
    return Writers(writers)


def _connector(server: PrivateServer, schema: str) -> Callable[[], Session]:
    # a deadlock between the shards is seen by no server: only the short wait ends it
    return lambda: server.connect(database=schema, init_command="SET innodb_lock_wait_timeout = 1")


def await_transactions(of: Writer | Writers, more: int) -> None:
    """Wait until so many more transactions are done."""
    begun = of.transactions
    until(
        f"{more} more transactions are done,",
        lambda: of.transactions >= begun + more,
        seen=lambda: of.transactions,
    )


def touch_temporary_table(cursor: Cursor) -> None:
    """Make MariaDB keep the rows of this transaction in the log even when they are undone."""
    cursor.execute("CREATE TEMPORARY TABLE scratch (n INT) ENGINE=InnoDB")
    cursor.execute("DROP TEMPORARY TABLE scratch")


def _write(
    cursor: Cursor, verb: str, table: str, rows: Sequence[tuple[object, ...]], suffix: str = ""
) -> int:
    row = "(" + ", ".join(["%s"] * len(rows[0])) + ")"
    values = [value for one in rows for value in one]
    statement = f"{verb} {table} ({_COLUMNS[table]}) VALUES {', '.join([row] * len(rows))} {suffix}"
    return cursor.execute(statement, values)
