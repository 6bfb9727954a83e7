"""The benchmark's table on a private server, its reference client, and a writer of steady transactions."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from catchment.demo.install import find_program
from catchment.demo.server import PrivateServer

SCHEMA = "bench"
TABLE = f"{SCHEMA}.stress_test_pk"
_STOP = "bench_stop"
_FILL_ROWS = 1_000_000
CHANGES_PER_TRANSACTION = 10
# What a writer beside a copy does.
TRANSACTIONS_PER_SECOND = 1000


def create(server: PrivateServer) -> None:
    """Create the empty table."""
    server.sql(
        f"CREATE DATABASE {SCHEMA}",
        f"CREATE TABLE {TABLE} (id bigint AUTO_INCREMENT, sig varchar(40), c char(8), PRIMARY KEY (id, c))",
    )


def fill(server: PrivateServer, rows: int) -> None:
    """Create and fill `stress_test_pk`; its rows end one log file, so that the feed begins in the next."""
    create(server)
    for first in range(1, rows + 1, _FILL_ROWS):
        last = min(first + _FILL_ROWS - 1, rows)
        server.sql(
            f"INSERT INTO {TABLE}"
            f" SELECT seq, SHA1(seq), LEFT(MD5(seq), 8) FROM {SCHEMA}.seq_{first}_to_{last}"
        )
    server.sql(f"ANALYZE TABLE {TABLE}", "FLUSH BINARY LOGS")


def select_all_seconds(server: PrivateServer) -> float:
    """Seconds that MariaDB's own client takes to stream the whole table to /dev/null."""
    command = [
        find_program("mariadb", "mariadb-client"),
        f"--defaults-file={server.defaults_file}",
        "--quick",
        "-e",
        f"SELECT * FROM {TABLE}",
    ]
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


@dataclass
class Writer:
    """What a steady writer did: transactions, and for how many seconds."""

    transactions: int = 0
    seconds: float = 0.0


@contextmanager
def writing(server: PrivateServer, statement: str, per_second: int) -> Iterator[Writer]:
    """Run `statement`, a transaction each, so many times a second, in a session of the server's own.

    The loop runs inside the server: no client takes part of the cores. `@n` counts the transactions.
    """
    loop = (
        "BEGIN NOT ATOMIC SET @n = 0; SET @began = SYSDATE(6);"
        f" WHILE IS_FREE_LOCK('{_STOP}') DO"
        f" WHILE @n < TIMESTAMPDIFF(MICROSECOND, @began, SYSDATE(6)) * {per_second} / 1000000 DO"
        f" {statement}; SET @n = @n + 1; END WHILE; DO SLEEP(0.005); END WHILE;"
        " SELECT @n, TIMESTAMPDIFF(MICROSECOND, @began, SYSDATE(6)) / 1000000; END"
    )
    done = Writer()

    def write() -> None:
        rows = server.sql(loop)
        done.transactions, done.seconds = int(rows[0][0]), float(rows[0][1])

    thread = threading.Thread(target=write, name="writer")
    holder = server.connect()
    thread.start()
    try:
        yield done
    finally:
        with holder.cursor() as cursor:
            cursor.execute(f"SELECT GET_LOCK('{_STOP}', 10)")
            thread.join()
        holder.close()


def change_one(rows: int) -> str:
    """A statement that changes one row at random, for `writing`."""
    return f"SET @k = 1 + FLOOR(RAND() * {rows}); UPDATE {TABLE} SET sig = SHA1(@n) WHERE id = @k"


def change_at_random(server: PrivateServer, rows: int, changes: int) -> None:
    """Log `changes` updates of rows spread at random, ten to a transaction."""
    names = [f"@k{i}" for i in range(CHANGES_PER_TRANSACTION)]
    # RAND() in the WHERE clause would be called anew for every row of the table.
    keys = ", ".join(f"{name} = 1 + FLOOR(RAND() * {rows})" for name in names)
    server.sql(
        f"BEGIN NOT ATOMIC FOR i IN 1..{changes // CHANGES_PER_TRANSACTION} DO SET {keys};"
        f" UPDATE {TABLE} SET sig = SHA1(CONCAT(id, '-', UUID_SHORT())) WHERE id IN ({', '.join(names)});"
        " END FOR; END"
    )
