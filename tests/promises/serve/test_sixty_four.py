"""Sixty-four clients of a server, healthy, slow, dead and cut off, over two shards under load; then it is killed.

What it holds stays bounded, the healthy ones do not notice the others, and each has, at every vgtid that is judged,
the rows to which the log leads. The long run takes as many seconds as CATCHMENT_SERVE_SECONDS says, ten minutes by
default.
"""

import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from catchment.demo.server import PrivateServer
from catchment.demo.workload import KEYS, load
from tests.promises.serve.conftest import Certificate
from tests.promises.serve.ledger import sums_of
from tests.promises.serve.many_clients import Order, Place, Seen
from tests.promises.serve.server import feed_file, free_port, process, server_file
from tests.promises.stream.conftest import Servers
from tests.world.oracle import Oracle
from tests.world.patience import until
from tests.world.proxy import Proxy
from tests.world.servers.chosen import chosen_server
from tests.world.workload import create_random_tables, random_writers

_SCHEMA = "sixty_four"
_WIDE = f"{_SCHEMA}.wide"
_FLIGHT = f"{_SCHEMA}.orders"
_MIB = 1 << 20
# What a shared reader keeps. There are two: of gRPC, and of the table that Flight has.
_BUFFER = 2 * _MIB
# Of a client that does not read: a turn of its own reader (4 MiB of log of each shard, as Arrow and as messages), and
# what gRPC and the connection hold of messages of 1 MiB.
_OF_ONE = 24 * _MIB
_BESIDE = 64 * _MIB
_KEPT_ROWS = 20
_RECENT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many clients of each kind, by gRPC and by Flight. `cut`: whose cable is pulled; Arrow's server does not
    notice that of one that did not read. `seconds`: of the run; `slack`: seconds that healthy clients may lag more, in
    a phase that is as short as the arrival of the others.

    `wide`: characters of a row that is written many times a second. `rate`: of other transactions. Clients that judge
    each row in Python take more of the two processors than the server beside which they run."""

    healthy: tuple[int, int]
    slow: tuple[int, int]
    dead: tuple[int, int]
    killed: tuple[int, int]
    cut: tuple[int, int]
    seconds: float
    wide: int
    rate: float
    slack: float

    @property
    def sick(self) -> int:
        """Those that are not healthy."""
        return sum(self.slow) + sum(self.dead) + self.gone

    @property
    def gone(self) -> int:
        """Those that the server has to notice."""
        return sum(self.killed) + sum(self.cut)


FEW = Crowd((6, 2), (1, 1), (1, 1), (1, 1), (2, 0), 30.0, 100_000, 8.0, 1.0)
MANY = Crowd(
    (32, 8),
    (6, 2),
    (4, 2),
    (4, 2),
    (4, 0),
    float(os.environ.get("CATCHMENT_SERVE_SECONDS", "600")),
    6_000,
    2.0,
    0.25,
)


@dataclass
class Clients:
    """Processes of clients, and what they saw."""

    base: Order
    seen: list[Seen] = field(default_factory=list)
    running: list["subprocess.Popen[str]"] = field(default_factory=list)

    def begin(
        self, how: str, name: str, many: tuple[int, int], places: Sequence[Place]
    ) -> "subprocess.Popen[str]":
        """A process with so many clients by gRPC and by Flight."""
        order = msgspec.structs.replace(
            self.base, how=how, name=name, places=list(places), grpc=many[0], arrow=many[1]
        )
        command = [sys.executable, "-m", "tests.promises.serve.many_clients"]
        one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.running.append(one)
        assert one.stdin is not None
        one.stdin.write(msgspec.json.encode(order).decode() + "\n")
        one.stdin.flush()
        threading.Thread(target=self._hear, args=(one,), daemon=True).start()
        return one

    def _hear(self, running: "subprocess.Popen[str]") -> None:
        assert running.stdout is not None
        decoder = msgspec.json.Decoder(Seen)
        for line in running.stdout:
            self.seen.append(decoder.decode(line))

    def newest(self) -> Mapping[str, Seen]:
        """The vgtid at which each stood last."""
        return {one.client: one for one in list(self.seen) if one.place}

    def faults(self, ended: float) -> list[str]:
        """What must not be: also that the stream of a healthy one ends before the server does."""
        return [
            f"{one.client}: {one.fault or one.end}"
            for one in self.seen
            if one.fault or (one.end and one.at < ended and one.client.startswith("healthy"))
        ]

    def end(self) -> None:
        """End them all."""
        for one in self.running:
            one.kill()
            one.wait()


@contextmanager
def memory(pid: int) -> Iterator[list[int]]:
    """What a process holds, every half second."""
    found: list[int] = []
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.5):
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                return
            found.extend(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()


@contextmanager
def wide_rows(servers: Servers, characters: int) -> Iterator[None]:
    """Twenty long rows a second on each shard, always the same few keys."""
    stop = threading.Event()

    def work(server: PrivateServer) -> None:
        number = 0
        while not stop.wait(0.05):
            number += 1
            text = f"REPEAT(MD5({number}), {characters // 32})"
            server.sql(f"REPLACE INTO {_WIDE} VALUES ({number % _KEPT_ROWS}, {text})")

    threads = [threading.Thread(target=work, args=(server,)) for server in servers.values()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.fixture
def shards() -> Iterator[Servers]:
    """Two of them, with the tables of the demo and one with long rows."""
    password = secrets.token_hex(12)
    with ExitStack() as stack:
        found = {
            name: stack.enter_context(chosen_server(server_id=number, password=password))
            for number, name in enumerate(("-80", "80-"), 161)
        }
        for index, server in enumerate(found.values()):
            server.sql(f"CREATE DATABASE {_SCHEMA}")
            create_random_tables([server], _SCHEMA)
            server.sql(f"CREATE TABLE {_WIDE} (id INT PRIMARY KEY, v LONGTEXT)")
            load(server, _SCHEMA, 100, index=index, count=len(found))
        yield found


def shown(page: int) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{page}/status.json", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)["feeds"][0]
    return found


def lags(seen: Sequence[Seen], since: float, until_: float) -> list[float]:
    """Of all healthy clients in a phase, once they have copied."""
    return [one.lag for one in seen if one.copied and since <= one.at < until_]


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def judged(seen: Sequence[Seen], oracles: Mapping[str, Oracle]) -> int:
    """How many states of clients were compared with the replayed log; each must be equal."""
    compared = 0
    for shard, oracle in oracles.items():
        states = [(one.place[shard], one) for one in seen if one.copied]
        sums: dict[str, int] = {}
        last = None
        for place, one in sorted(states, key=lambda state: state[0]):
            if place != last:
                sums, last = sums_of(oracle.advance(*place)), place
            have = one.sums.get(shard, {})
            wrong = [table for table in have if have[table] != sums[table]]
            assert have, f"{one.client} has nothing at {place} of {shard}"
            assert not wrong, f"{one.client} at {place} of {shard}: {wrong}"
            compared += 1
    return compared


@dataclass(frozen=True, slots=True)
class Served:
    """A server's file, where it listens, and the port of its page."""

    file: Path
    place: Place
    page: int


@dataclass
class Run:
    """What was measured. `alone`, `beside`, `ended`: when the healthy ones had copied, when the others came, and when
    the server was killed. `held`: bytes, `held_alone` before the others came."""

    alone: float = 0.0
    beside: float = 0.0
    ended: float = 0.0
    held_alone: int = 0
    held: list[list[int]] = field(default_factory=list)

    @property
    def most(self) -> int:
        """What a server held at most."""
        return max(max(found) for found in self.held)


def _servers(tmp_path: Path, shards: Servers, certificate: Certificate) -> list[Served]:
    feed = feed_file(tmp_path, shards, [f"{_SCHEMA}.*"])
    found = []
    for _ in range(2):
        place, page = Place(free_port(), free_port()), free_port()
        file = server_file(
            tmp_path,
            feed,
            tls=certificate.tls(),
            port=place.port,
            flight={"port": place.arrow},
            status={"port": page},
            buffer=f"{_BUFFER // _MIB}MB",
        )
        found.append(Served(file, place, page))
    return found


def _turned(stack: ExitStack, crowd: Crowd, clients: Clients, first: Served, second: Served) -> Run:
    """The healthy ones alone, then beside the others; then another server takes over."""
    run = Run()
    both = [first.place, second.place]
    running = stack.enter_context(process(first.file))
    run.held.append(stack.enter_context(memory(running.pid)))
    stack.callback(clients.end)
    for number in range(2):
        clients.begin("healthy", f"healthy-{number}", (crowd.healthy[0] // 2, crowd.healthy[1] // 2), both)
    count = sum(crowd.healthy)
    until("all have copied", lambda: sum(one.copied for one in clients.newest().values()) == count)
    until("all share a reader", lambda: _sharing(first) == count)
    run.alone = time.time()
    time.sleep(crowd.seconds * 0.2)
    run.beside, run.held_alone = time.time(), run.most
    clients.begin("slow", "slow", crowd.slow, both)
    clients.begin("dead", "dead", crowd.dead, both[:1])
    killed = clients.begin("dead", "killed", crowd.killed, both[:1])
    cables = [stack.enter_context(Proxy("127.0.0.1", port)) for port in (first.place.port, first.place.arrow)]
    clients.begin("dead", "cut", crowd.cut, [Place(*(cable.port for cable in cables))])
    until("all are there", lambda: len(shown(first.page)["clients"]) == count + crowd.sick)
    time.sleep(crowd.seconds * 0.15)
    for cable in cables:
        cable.stall()
    killed.kill()
    left = count + crowd.sick - crowd.gone
    time.sleep(crowd.seconds * 0.25)
    until("those that are gone are noticed", lambda: len(shown(first.page)["clients"]) <= left)
    run.ended = time.time()
    running.send_signal(signal.SIGKILL)
    other = stack.enter_context(process(second.file))
    run.held.append(stack.enter_context(memory(other.pid)))

    def lately(one: Seen) -> bool:
        return one.at > run.ended and one.lag < _RECENT_SECONDS

    until("all go on elsewhere", lambda: sum(map(lately, clients.newest().values())) == count)
    time.sleep(crowd.seconds * 0.4)
    until("all share a reader there", lambda: _sharing(second) >= count)
    return run


def _sharing(server: Served) -> int:
    return sum(int(one["clients"]) for one in shown(server.page)["readers"])


def _run(crowd: Crowd, tmp_path: Path, shards: Servers, certificate: Certificate) -> None:
    keys = {f"{_SCHEMA}.{table}": key for table, key in KEYS.items()} | {_WIDE: ("id",)}
    oracles = {name: Oracle.from_rest(server.login(), keys) for name, server in shards.items()}
    columns = {table: list(key) for table, key in keys.items()}
    rules = [f"{_SCHEMA}.*"]
    clients = Clients(Order("", "", [], str(certificate.certificate), columns, rules, _FLIGHT, 0, 0))
    writers = random_writers(list(shards.values()), _SCHEMA, seed=3, rate=crowd.rate, keys=100)
    with writers, wide_rows(shards, crowd.wide), ExitStack() as stack:
        run = _turned(stack, crowd, clients, *_servers(tmp_path, shards, certificate))
    faults = clients.faults(run.ended)
    assert not faults, faults[:5]
    bound = run.held_alone + _BUFFER * 2 + crowd.sick * _OF_ONE + _BESIDE
    without, with_them = lags(clients.seen, run.alone, run.beside), lags(clients.seen, run.beside, run.ended)
    print(
        f"memory: {run.held_alone // _MIB} MiB without the sick ones, {run.most // _MIB} with them, at most"
        f" {bound // _MIB}; lag p95: {p95(without):.3f} s and {p95(with_them):.3f} s",
        flush=True,
    )
    compared = judged(clients.seen, oracles)
    print(f"{compared} states of {sum(crowd.healthy)} clients are equal to the replayed log", flush=True)
    assert run.most < bound
    assert p95(with_them) < 2 * p95(without) + crowd.slack
    assert compared > 10 * sum(crowd.healthy)


@pytest.mark.long
def test_sixteen(tmp_path: Path, shards: Servers, certificate: Certificate) -> None:
    _run(FEW, tmp_path, shards, certificate)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_sixty_four(tmp_path: Path, shards: Servers, certificate: Certificate) -> None:
    _run(MANY, tmp_path, shards, certificate)
