"""`catchment.stream` in one program: a copy, a backlog of transactions of 1 and of 100 rows, ages at 400 a second, and
the cores that 100 transactions a second take, of the program and of the server beside its writer.

As typed events and as Arrow, one client. Beside it go-mysql's syncer (Go installed) and Debezium's embedded engine
(Java 17 and Maven installed), which read the same backlog from the same server, in wall time. Run: `python -m bench
--only stream`.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Any

import msgspec

from bench import debezium_reference
from bench.debezium_reference import Spans
from bench.figures import Figure, figure, percentile
from bench.go_reference import program, synced_rows_per_second
from bench.processes import own_cpu_seconds
from bench.stress import SCHEMA, TABLE, create, writing
from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset
from catchment.serve.stream.events import Batch, CopyCompleted, Row, VGtid
from catchment.serve.stream.stream import Stream, stream
from catchment.serve.stream.vgtid import StreamCut

EVENTS_AIM, BATCHES_AIM = 200_000, 1_000_000
P50_AIM, P99_AIM = 0.003, 0.020
PER_SECOND = 400
SECONDS = 20.0
# Few, so that each transaction is a turn.
SLOW_PER_SECOND = 100
CORES_AIM, SERVER_CORES_AIM = 0.08, 0.04
COMMITS = f"{SCHEMA}.commits"
_INSERT = f"INSERT INTO {COMMITS} (written) VALUES (CONVERT_TZ(SYSDATE(6), @@time_zone, '+00:00'))"
# Of a row as the source has it: id, a digest of 40 characters, c.
ROW_BYTES = 8 + 40 + 8


@dataclass(frozen=True)
class Backlog:
    """Changes that are in the log, and the vgtid in front of them."""

    vgtid: str
    rows: int


def run(rows: int = 2_000_000, runs: int = 3) -> list[Figure]:
    """Medians over the runs; events, batches and go-mysql take turns."""
    with PrivateServer(settings={"innodb_buffer_pool_size": "1G"}) as server:
        create(server)
        server.sql(
            f"INSERT INTO {TABLE} SELECT seq, SHA1(seq), LEFT(MD5(seq), 8) FROM {SCHEMA}.seq_1_to_{rows}"
        )
        found = _both("copy", rows, runs, lambda ask: _seconds(server, "", ask, _copied))
        small, large = rows // 10, rows // 2
        for per, changes in ((1, small), (100, large)):
            backlog = _written(server, per, changes)
            name = f"changes, {per} a transaction"
            found += _both(name, changes, runs, partial(_caught_up, server, backlog))
            found += _beside(server, name, backlog, runs)
            found += _beside_debezium(server, name, backlog, runs)
        return found + _ages(server, runs) + _cores(server, runs)


Ask = Callable[[Stream], Any]


def _both(name: str, rows: int, runs: int, seconds: Callable[[Ask], float]) -> list[Figure]:
    pairs = [(seconds(iter), seconds(Stream.batches)) for _ in range(runs)]
    events, batches = zip(*pairs, strict=True)
    return [
        figure(f"stream of events, {name}", [rows / s for s in events], "rows/s", "aim", [EVENTS_AIM] * runs),
        figure(
            f"stream of batches, {name}", [rows / s for s in batches], "rows/s", "aim", [BATCHES_AIM] * runs
        ),
        figure(
            f"stream of batches, {name}",
            [rows * ROW_BYTES / s / 1e6 for s in batches],
            "MB/s",
            "of events",
            [rows * ROW_BYTES / s / 1e6 for s in events],
        ),
    ]


def _beside(server: PrivateServer, name: str, backlog: Backlog, runs: int) -> list[Figure]:
    built = program()
    if built is None:
        return []
    ours = [backlog.rows / _seconds(server, backlog.vgtid, iter, _all(backlog)) for _ in range(runs)]
    theirs = [synced_rows_per_second(built, server, _at(backlog), backlog.rows) for _ in range(runs)]
    return [figure(f"stream of events, {name}, beside go-mysql", ours, "rows/s", "go-mysql", theirs)]


def _beside_debezium(server: PrivateServer, name: str, backlog: Backlog, runs: int) -> list[Figure]:
    """From the first row to the last, when both are warm, and from the start of the reader on."""
    classes = debezium_reference.program()
    if classes is None:
        return []
    figures = []
    for called, settings in debezium_reference.SETTINGS.items():
        pairs = [
            (
                _spans(server, backlog),
                debezium_reference.spans(classes, server, TABLE, _at(backlog), backlog.rows, settings),
            )
            for _ in range(runs)
        ]
        ours, theirs = zip(*pairs, strict=True)
        for said, seconds in (("first row to last", _since_first), ("from its start", _since_start)):
            figures.append(
                figure(
                    f"stream of events, {name}, {said}",
                    [backlog.rows / seconds(one) for one in ours],
                    "rows/s",
                    called,
                    [backlog.rows / seconds(one) for one in theirs],
                )
            )
    return figures


def _since_first(spans: Spans) -> float:
    return spans.since_first


def _since_start(spans: Spans) -> float:
    return spans.since_start


def _spans(server: PrivateServer, backlog: Backlog) -> Spans:
    began = time.perf_counter()
    first, left = 0.0, backlog.rows
    with stream(_source(server), vgtid=backlog.vgtid, rules=[TABLE]) as opened:
        for event in opened:
            if isinstance(event, Row):
                first = first or time.perf_counter()
                left -= 1
                if not left:
                    now = time.perf_counter()
                    return Spans(now - first, now - began)
    raise AssertionError("a stream has no end")


def _caught_up(server: PrivateServer, backlog: Backlog, ask: Ask) -> float:
    return _seconds(server, backlog.vgtid, ask, _all(backlog))


def _seconds(server: PrivateServer, vgtid: str, ask: Ask, done: Callable[[], Callable[[Any], bool]]) -> float:
    began = time.perf_counter()
    with stream(_source(server), vgtid=vgtid or None, rules=[TABLE]) as opened:
        over = done()
        for one in ask(opened):
            if over(one):
                return time.perf_counter() - began
    raise AssertionError("a stream has no end")


def _copied() -> Callable[[Any], bool]:
    return lambda one: isinstance(one, CopyCompleted) and one.table is None


def _all(backlog: Backlog) -> Callable[[], Callable[[Any], bool]]:
    """Once all changes of a backlog have come."""

    def counting() -> Callable[[Any], bool]:
        left = backlog.rows

        def over(one: Any) -> bool:
            nonlocal left
            left -= 1 if isinstance(one, Row) else one.rows.num_rows if isinstance(one, Batch) else 0
            return left <= 0

        return over

    return counting


def _written(server: PrivateServer, per: int, changes: int) -> Backlog:
    """Log inserts, so many rows to a transaction."""
    with stream(_source(server), vgtid="current", rules=[TABLE]) as opened:
        first = next(opened)
    assert isinstance(first, VGtid)
    row = f"INSERT INTO {TABLE} (sig, c) SELECT SHA1(seq + @n), 'c' FROM {SCHEMA}.seq_1_to_{per}"
    server.sql(
        f"BEGIN NOT ATOMIC SET @n = 0; FOR i IN 1..{changes // per} DO {row}; SET @n = i; END FOR; END"
    )
    return Backlog(first.text, changes // per * per)


def _ages(server: PrivateServer, runs: int) -> list[Figure]:
    server.sql(f"CREATE TABLE {COMMITS} (id bigint AUTO_INCREMENT PRIMARY KEY, written datetime(6))")
    ages = [_measured(server) for _ in range(runs)]
    name = f"commit to client at {PER_SECOND} transactions/s"
    return [
        figure(f"{name}, {said}", [percentile(found, share) for found in ages], "s", "aim", [aim] * runs, 4)
        for said, share, aim in (("p50", 0.5, P50_AIM), ("p99", 0.99, P99_AIM))
    ]


def _cores(server: PrivateServer, runs: int) -> list[Figure]:
    """Of the program, whose writer only waits, and of the server beyond what the writer costs it."""
    assert server.pid is not None
    found: list[tuple[float, float]] = []
    for _ in range(runs):
        began = own_cpu_seconds(server.pid)
        with writing(server, _INSERT, SLOW_PER_SECOND):
            time.sleep(SECONDS)
        alone = own_cpu_seconds(server.pid) - began
        began, mine = own_cpu_seconds(server.pid), time.process_time()
        _measured(server, SLOW_PER_SECOND)
        beside = own_cpu_seconds(server.pid) - began
        found.append(((time.process_time() - mine) / SECONDS, (beside - alone) / SECONDS))
    name = f"stream of events at {SLOW_PER_SECOND} transactions/s"
    program, servers = zip(*found, strict=True)
    return [
        figure(f"{name}, the program", list(program), "cores", "aim", [CORES_AIM] * runs, 3),
        figure(f"{name}, the server", list(servers), "cores", "aim", [SERVER_CORES_AIM] * runs, 3),
    ]


def _measured(server: PrivateServer, per_second: int = PER_SECOND) -> list[float]:
    """Ages of rows when the client got them, by one clock."""
    ages: list[float] = []
    with (
        stream(_source(server), vgtid="current", rules=[COMMITS]) as opened,
        closing(opened),
        writing(server, _INSERT, per_second),
    ):
        ends = time.time() + SECONDS
        for event in opened:
            if isinstance(event, Row):
                assert event.after is not None
                ages.append(time.time() - event.after["written"].replace(tzinfo=UTC).timestamp())
            if time.time() > ends:
                return ages
    raise AssertionError("a stream has no end")


def _at(backlog: Backlog) -> LogOffset:
    (state,) = msgspec.json.decode(backlog.vgtid, type=StreamCut).cut.shards.values()
    return state.position.at


def _source(server: PrivateServer) -> dict[str, Any]:
    shard = {
        "name": "-",
        "host": "127.0.0.1",
        "port": server.port,
        "user": "catchment",
        "password": server.password,
    }
    return {"keyspace": "bench", "shards": [shard]}
