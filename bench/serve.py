"""`catchment serve` from end to end, on two shards: what 1, 8 and 64 clients get by gRPC and by Arrow Flight.

Each reads a copy and a backlog by a reader of its own; then all hear one shared reader of what comes. More clients get
less each: 8 a quarter, 64 a sixteenth. Run: `python -m bench --only serve`.
"""

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure, figure, percentile
from bench.serve_client import Order, Target
from bench.served import Reading, Served, serving, source_of, target_of
from bench.stress import SCHEMA, writing
from catchment.demo.server import PrivateServer
from catchment.serve.stream.events import VGtid
from catchment.serve.stream.stream import stream

SHARDS = ("-80", "80-")
# Clients at a time, and which part of the rows each of them gets.
PARTS: Mapping[int, int] = {1: 1, 8: 4, 64: 16}
CHANGES = f"{SCHEMA}.changes"
COMMITS = f"{SCHEMA}.commits"
SKEWED = f"{SCHEMA}.skewed"
PER_SECOND = 400
SECONDS = 15.0
P50_AIM, P99_AIM = 0.005, 0.020
SKEW_PAIRS = 7
# Of the log of the pairs, by the times in it.
SKEW_ROWS_PER_SECOND = 2_000
_COLUMNS = "(id bigint AUTO_INCREMENT, sig varchar(40), c char(8), PRIMARY KEY (id, c))"

Servers = Mapping[str, PrivateServer]
Take = Callable[[Order], Reading]


@dataclass(frozen=True, slots=True)
class Backlog:
    """Changes that are in the logs. `vgtids`: for each number of clients where its part begins."""

    vgtids: Mapping[int, str]
    rows: Mapping[int, int]
    target: Target


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Medians over the runs; what stands beside one another takes turns."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="catchment-bench-")))
        servers = {
            name: stack.enter_context(
                PrivateServer(server_id=number, settings={"innodb_buffer_pool_size": "512M"})
            )
            for number, name in enumerate(SHARDS, 1)
        }
        _on_all(servers, lambda server: _create(server, rows // len(SHARDS)))
        served = stack.enter_context(serving(directory, servers))
        found = _copies(served, servers, rows, runs)
        for per, changes in ((1, rows // 10), (100, rows // 2)):
            found += _changes(served, servers, per, changes, runs)
        peak = served.peak_mib()
        found += _ages(served, servers, runs)
        found += _skews(served, servers, rows // 4)
        return [*found, figure("serve, peak memory of the server", [peak], "MiB", "-", [0.0])]


def _create(server: PrivateServer, rows: int) -> None:
    server.sql(
        f"CREATE DATABASE {SCHEMA}",
        f"CREATE TABLE {CHANGES} {_COLUMNS}",
        f"CREATE TABLE {SKEWED} {_COLUMNS}",
        f"CREATE TABLE {COMMITS} (id bigint AUTO_INCREMENT PRIMARY KEY, written datetime(6))",
    )
    for clients, part in PARTS.items():
        server.sql(
            f"CREATE TABLE {SCHEMA}.copy_{clients} {_COLUMNS}",
            f"INSERT INTO {SCHEMA}.copy_{clients} SELECT seq, SHA1(seq), LEFT(MD5(seq), 8)"
            f" FROM {SCHEMA}.seq_1_to_{rows // part}",
        )


def _copies(served: Served, servers: Servers, rows: int, runs: int) -> list[Figure]:
    target = target_of(servers)

    def take(order: Order) -> Reading:
        return served.read(order, target)

    orders = {clients: Order(served.port, f"{SCHEMA}.copy_{clients}", "", clients) for clients in PARTS}
    counts = {clients: rows // len(SHARDS) // part * len(SHARDS) for clients, part in PARTS.items()}
    return _beside_one_another("copy", served, orders, counts, take, runs)


def _changes(served: Served, servers: Servers, per: int, changes: int, runs: int) -> list[Figure]:
    """A backlog, and the same number of changes that 64 clients hear from one reader."""
    backlog = _written(servers, per, changes)
    shape = f"{per} a transaction"

    def take(order: Order) -> Reading:
        return served.read(order, backlog.target)

    orders = {clients: Order(served.port, CHANGES, backlog.vgtids[clients], clients) for clients in PARTS}
    found = _beside_one_another(shape, served, orders, backlog.rows, take, runs)
    few = changes // PARTS[64] // len(SHARDS) // per * per

    def write() -> Target:
        _on_all(servers, lambda server: _insert(server, per, few))
        return target_of(servers)

    def heard(order: Order) -> Reading:
        return served.follow(order, write)

    orders = {clients: Order(served.port, CHANGES, "current", clients) for clients in PARTS}
    rows = dict.fromkeys(PARTS, few * len(SHARDS))
    return found + _beside_one_another(f"{shape}, by a shared reader", served, orders, rows, heard, runs)


def _beside_one_another(
    shape: str,
    served: Served,
    orders: Mapping[int, Order],
    rows: Mapping[int, int],
    take: Take,
    runs: int,
) -> list[Figure]:
    """All numbers of clients by both protocols, `runs` times in turns."""
    found: dict[tuple[bool, int], list[Reading]] = {}
    for _ in range(runs):
        for clients, order in orders.items():
            for arrow in (False, True):
                port = served.arrow if arrow else served.port
                asked = Order(port, order.table, order.vgtid, clients, arrow=arrow, counts=arrow)
                reading = take(asked)
                assert not arrow or reading.met.rows == clients * rows[clients], (reading.met.rows, asked)
                found.setdefault((arrow, clients), []).append(reading)
                _say(shape, asked, rows[clients], reading)
    return [one for arrow in (False, True) for one in _figures(shape, arrow, found, rows)]


def _figures(
    shape: str, arrow: bool, found: Mapping[tuple[bool, int], Sequence[Reading]], rows: Mapping[int, int]
) -> list[Figure]:
    figures = []
    alone = _rates(found[arrow, 1], rows[1])
    for clients in rows:
        readings = found[arrow, clients]
        name = f"serve, {'Flight' if arrow else 'gRPC'}, {shape}, {clients} clients"
        total = _rates(readings, clients * rows[clients])
        each = [rows[clients] / statistics.median(one.each) for one in readings]
        nbytes = [one.met.nbytes / one.seconds / 1e6 for one in readings]
        spent = [clients * rows[clients] / max(one.cpu, 0.01) for one in readings]
        figures += [
            figure(f"{name}, all", total, "rows/s", "1 client", alone),
            figure(f"{name}, each", each, "rows/s", "1 client", alone),
            figure(f"{name}, all", nbytes, "MB/s", "-", [0.0] * len(nbytes), 1),
            figure(f"{name}, rows for a second of the server's CPU", spent, "rows/s", "in wall time", total),
        ]
    return figures


def _rates(readings: Sequence[Reading], rows: int) -> list[float]:
    return [rows / one.seconds for one in readings]


def _say(shape: str, order: Order, rows: int, reading: Reading) -> None:
    how = "Flight" if order.arrow else "gRPC"
    total = order.clients * rows / reading.seconds
    print(
        f"  {shape}, {how}, {order.clients} clients: {total:,.0f} rows/s in {reading.seconds:.2f} s,"
        f" {reading.cpu:.2f} s of the server's CPU",
        flush=True,
    )


def _written(servers: Servers, per: int, changes: int) -> Backlog:
    """Log inserts, so many rows to a transaction; the shares of many clients lie at the end."""
    share = {clients: changes // part // len(SHARDS) // per * per for clients, part in PARTS.items()}
    sizes = [*share.values(), 0]
    vgtids = {}
    for clients, size, smaller in zip(PARTS, sizes, sizes[1:], strict=False):
        vgtids[clients] = _now(servers)
        _on_all(servers, lambda server, rows=size - smaller: _insert(server, per, rows))  # type: ignore[misc]
    return Backlog(
        vgtids, {clients: size * len(SHARDS) for clients, size in share.items()}, target_of(servers)
    )


def _insert(server: PrivateServer, per: int, rows: int) -> None:
    row = f"INSERT INTO {CHANGES} (sig, c) SELECT SHA1(seq + @n), 'c' FROM {SCHEMA}.seq_1_to_{per}"
    server.sql(f"BEGIN NOT ATOMIC SET @n = 0; FOR i IN 1..{rows // per} DO {row}; SET @n = i; END FOR; END")


def _now(servers: Servers) -> str:
    with stream(source_of(servers), vgtid="current", rules=[f"{SCHEMA}.*"]) as opened:
        first = next(opened)
    assert isinstance(first, VGtid)
    return first.text


def _on_all(servers: Servers, work: Callable[[PrivateServer], object]) -> None:
    with ThreadPoolExecutor(len(servers)) as pool:
        list(pool.map(work, servers.values()))


def _ages(served: Served, servers: Servers, runs: int) -> list[Figure]:
    """From a commit until a client has the row, of one client beside others that only take messages."""
    now = "CONVERT_TZ(SYSDATE(6), @@time_zone, '+00:00')"
    statement = f"INSERT INTO {COMMITS} (written) VALUES ({now})"
    found: dict[tuple[bool, int], list[list[float]]] = {}
    with ExitStack() as stack:
        for server in servers.values():
            stack.enter_context(writing(server, statement, PER_SECOND // len(servers)))
        for _ in range(runs):
            for clients in PARTS:
                for arrow in (False, True):
                    port = served.arrow if arrow else served.port
                    order = Order(port, COMMITS, "current", arrow=arrow, ages=SECONDS)
                    ages = served.ages(order, clients - 1)
                    found.setdefault((arrow, clients), []).append(ages)
    return [
        figure(
            f"serve, {'Flight' if arrow else 'gRPC'}, commit to one of {clients} clients at {PER_SECOND}"
            f" transactions/s, {said}",
            [percentile(one, share) for one in ages],
            "s",
            "aim",
            [aim] * runs,
            4,
        )
        for (arrow, clients), ages in sorted(found.items())
        for said, share, aim in (("p50", 0.5, P50_AIM), ("p99", 0.99, P99_AIM))
    ]


def _skews(served: Served, servers: Servers, rows: int) -> list[Figure]:
    """A backlog with and without `minimize_skew`, in pairs. Both shards have as many rows for each second of it."""
    begin = _now(servers)
    each = rows // len(SHARDS)
    per_second = SKEW_ROWS_PER_SECOND // len(SHARDS)
    insert = f"INSERT INTO {SKEWED} (sig, c) VALUES (SHA1(@i), 'c')"
    seconds = each // per_second
    loop = (
        f"BEGIN NOT ATOMIC SET @began = UNIX_TIMESTAMP() - {seconds};"
        f" FOR i IN 1..{each} DO SET @i = i, timestamp = @began + i DIV {per_second}; {insert}; END FOR; END"
    )
    _on_all(servers, lambda server: server.sql(loop))
    target = target_of(servers)
    plain: list[float] = []
    aligned: list[float] = []
    for number in range(SKEW_PAIRS):
        orders = [Order(served.port, SKEWED, begin, minimize_skew=flag) for flag in (False, True)]
        for order in orders if number % 2 else reversed(orders):
            reading = served.read(order, target)
            (aligned if order.minimize_skew else plain).append(rows / reading.seconds)
            print(f"  minimize_skew {order.minimize_skew}: {rows / reading.seconds:,.0f} rows/s", flush=True)
    name = f"serve, a backlog of {seconds} s on {len(SHARDS)} shards"
    return [figure(f"{name}, minimize_skew", aligned, "rows/s", "without", plain)]
