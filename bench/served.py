"""A `catchment serve` of its own, and clients of it in another process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bench.processes import cpu_seconds
from bench.serve_client import FEED, READY, TOKEN, Met, Order, Target
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.position import LogOffset

KEYSPACE = "bench"
# 64 clients that begin at once, while rows are written, all hear one reader after about a minute on two cores.
_WAIT_SECONDS = 300.0
_FEWEST_AGES = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """What clients met, and what it took. `seconds`: until the last one had all; `each`: of every client. `cpu`: of
    the server."""

    met: Met
    seconds: float
    each: list[float]
    cpu: float


@dataclass
class Served:
    """A server that runs. `port`: of gRPC, `arrow`: of Arrow Flight."""

    process: "subprocess.Popen[str]"
    port: int
    arrow: int
    page: int

    def read(self, order: Order, target: Target) -> Reading:
        """What clients need until all of them stand at the target."""
        self._wait_for(lambda shown: not shown["clients"])
        before = self._cpu()
        with _clients(order) as running:
            _tell(running, target)
            _placed(running)
            met = _met(running)
        each = [ended - began for began, ended in zip(met.began, met.ended, strict=True)]
        return Reading(met, max(met.ended) - min(met.began), each, self._cpu() - before)

    def follow(self, order: Order, write: Callable[[], Target]) -> Reading:
        """The same of what is written while the server is stopped, once all of them hear one shared reader."""
        self._wait_for(lambda shown: not shown["clients"])
        with _clients(order) as running:
            self._joined(order.clients)
            _placed(running)
            self.process.send_signal(signal.SIGSTOP)
            try:
                _tell(running, write())
            finally:
                began = time.time()
                before = self._cpu()
                self.process.send_signal(signal.SIGCONT)
            met = _met(running)
        each = [ended - began for ended in met.ended]
        return Reading(met, max(each), each, self._cpu() - before)

    def ages(self, order: Order, others: int) -> list[float]:
        """Seconds from a row's commit until a client had it, with so many others beside it."""
        beside = msgspec.structs.replace(order, clients=others, ages=0.0)
        self._wait_for(lambda shown: not shown["clients"])
        if not others:
            return self._ages(order)
        with _clients(beside) as running:
            self._joined(others)
            try:
                return self._ages(order)
            finally:
                running.kill()

    def peak_mib(self) -> float:
        """Of its resident memory so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) / 1024

    def _ages(self, order: Order) -> list[float]:
        with _clients(order) as running:
            _placed(running)
            ages = _met(running).ages
        assert len(ages) > _FEWEST_AGES, f"{len(ages)} rows came"
        return ages[len(ages) // 10 :]

    def _joined(self, clients: int) -> None:
        """Wait until so many share a reader."""
        self._wait_for(lambda shown: sum(one["clients"] for one in shown["readers"]) == clients)

    def _wait_for(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not holds(shown := self._shown()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the server's clients are not as they should be: {shown}")
            time.sleep(0.05)

    def _shown(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.page}/status.json", timeout=60) as answer:
            found: dict[str, Any] = json.load(answer)["feeds"][0]
        return found

    def _cpu(self) -> float:
        return sum(cpu_seconds(self.process.pid).values())


def source_of(servers: Mapping[str, PrivateServer]) -> dict[str, Any]:
    """The section `source` of a feed file."""
    shards = [
        {
            "name": name,
            "host": server.host,
            "port": server.port,
            "user": FEED_USER,
            "password": server.password,
        }
        for name, server in servers.items()
    ]
    return {"keyspace": KEYSPACE, "shards": shards}


def target_of(servers: Mapping[str, PrivateServer]) -> Target:
    """Where the logs end."""
    return Target({f"{KEYSPACE}/{name}": LogOffset(*server.log_end()) for name, server in servers.items()})


@contextmanager
def serving(directory: Path, servers: Mapping[str, PrivateServer]) -> Iterator[Served]:
    """A server of all tables of these shards, without TLS, until the block ends."""
    ports = _free_ports(3)
    feed, file = directory / "feed.yaml", directory / "serve.yaml"
    feed.write_text(
        yaml.safe_dump(
            {
                "name": FEED,
                "source": source_of(servers),
                "tables": ["bench.*"],
                "sink": {"path": str(directory / "lake")},
            }
        )
    )
    file.write_text(
        yaml.safe_dump(
            {
                "port": ports[0],
                "tls": False,
                "feeds": [{"file": str(feed), "tokens": [TOKEN]}],
                "flight": {"port": ports[1]},
                "status": {"port": ports[2]},
            }
        )
    )
    command = [sys.executable, "-m", "catchment.cli.main", "serve", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("serving ")
            yield Served(process, *ports)
        finally:
            process.kill()


@contextmanager
def _clients(order: Order) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "bench.serve_client"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ
    ) as running:
        try:
            _tell(running, order)
            yield running
        finally:
            running.kill()


def _tell(running: "subprocess.Popen[str]", what: Order | Target) -> None:
    assert running.stdin is not None
    running.stdin.write(msgspec.json.encode(what).decode() + "\n")
    running.stdin.flush()


def _placed(running: "subprocess.Popen[str]") -> None:
    """Wait until all of the clients have begun."""
    assert running.stdout is not None
    assert running.stdout.readline().strip() == READY


def _met(running: "subprocess.Popen[str]") -> Met:
    assert running.stdout is not None
    return msgspec.json.decode(running.stdout.readline(), type=Met)


def _free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in listeners]
    for one in listeners:
        one.close()
    return ports
