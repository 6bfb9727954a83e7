"""Clients that other people would make: from the published protobuf, in Python and in Go, read the same."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from tests.layers.serve.formats.test_values import CASES
from tests.promises.serve.conftest import Certificate
from tests.promises.serve.server import FEED, TOKEN, feed_file, server_file, serving
from tests.promises.stream.conftest import Servers
from tests.tidy.sources import ROOT
from tests.world.patience import PATIENCE_SECONDS

EXAMPLES = ROOT / "examples" / "serve"
PROTO = ROOT / "proto"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the modules of Python that the docs have users make."""
    directory = tmp_path_factory.mktemp("python")
    out = [f"--python_out={directory}", f"--grpc_python_out={directory}"]
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", *out]
    subprocess.run([*command, "catchment_stream/v1/stream.proto"], check=True)
    return directory


@pytest.fixture(scope="module")
def in_go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of examples/serve/go; skips where it cannot be built."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    directory = tmp_path_factory.mktemp("go")
    source = directory / "examples" / "serve" / "go"
    shutil.copytree(EXAMPLES / "go", source, ignore=shutil.ignore_patterns("catchment_stream", "follow"))
    shutil.copytree(PROTO, directory / "proto")
    made = subprocess.run(
        ["./generate.sh"],
        cwd=source,
        env={**os.environ, "PYTHON": sys.executable},
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode != 0 and "dial tcp" in made.stderr:
        pytest.skip("the proxy of Go's modules is not reached")
    assert made.returncode == 0, made.stderr
    subprocess.run(["go", "build", "-o", "follow", "."], cwd=source, check=True)
    return source / "follow"


class Follower:
    """A client's program: its lines, as they come."""

    def __init__(self, running: "subprocess.Popen[str]") -> None:
        self.events: list[dict[str, Any]] = []
        self._running = running
        self._come = threading.Condition()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._running.stdout is not None
        for line in self._running.stdout:
            with self._come:
                self.events.append(json.loads(line))
                self._come.notify_all()
        with self._come:
            self._come.notify_all()

    def until(self, met: Callable[[list[dict[str, Any]]], bool]) -> None:
        with self._come:
            assert self._come.wait_for(
                lambda: met(self.events) or self._running.poll() is not None, PATIENCE_SECONDS
            )
        assert met(self.events), self._running.stderr and self._running.stderr.read()


@contextmanager
def following(command: Sequence[object], authority: Path, **environment: str) -> Iterator[Follower]:
    env = {**os.environ, "STREAM_TOKEN": TOKEN, "STREAM_CA": str(authority), **environment}
    with subprocess.Popen(
        list(map(str, command)), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            yield Follower(running)
        finally:
            running.kill()


def path_with(modules: Path) -> str:
    return os.pathsep.join([str(modules), os.environ.get("PYTHONPATH", "")])


def copied(events: list[dict[str, Any]]) -> bool:
    return any("copyCompleted" in event and "table" not in event["copyCompleted"] for event in events)


def ended(shards: int) -> Callable[[list[dict[str, Any]]], bool]:
    """Whether the last row of each shard is told, and the vgtid behind it."""

    def met(events: list[dict[str, Any]]) -> bool:
        last = [n for n, event in enumerate(events) if '"the end"' in json.dumps(event.get("rows", ""))]
        return len(last) == shards and any("vgtid" in event for event in events[last[-1] :])

    return met


def plain(events: list[dict[str, Any]], shard: str) -> list[dict[str, Any]]:
    """The events of a shard without what differs between two streams."""
    return [event for event in events if next(iter(event.values())).get("shard") == shard]


def _written(server: PrivateServer, schema: str) -> None:
    server.sql(
        "INSERT INTO kinds SELECT 2, "
        + ", ".join(f"`{name}`" for name in CASES)
        + " FROM kinds WHERE id = 1",
        "UPDATE kinds SET id = 3 WHERE id = 2",
        "DELETE FROM kinds WHERE id = 1",
        "ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7",
        "UPDATE t SET v = 'ß\\n\"' WHERE id = 1",
        "ALTER TABLE t RENAME COLUMN w TO w2",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES (5, 'the end', -1)",
        database=schema,
    )


@pytest.mark.wide
@pytest.mark.mariadb("UUID, INET4 and INET6 are its types")
def test_go_and_python_read_the_same(
    tmp_path: Path,
    servers: Servers,
    schema: str,
    generated: Path,
    in_go: Path,
    certificate: Certificate,
) -> None:
    declared = ", ".join(f"`{name}` {case.declared}" for name, case in CASES.items())
    values = ", ".join(case.sql for case in CASES.values())
    for server in servers.values():
        server.sql(
            "SET SESSION sql_mode = '', time_zone = '+00:00'",
            f"CREATE TABLE kinds (id INT PRIMARY KEY, {declared})",
            f"INSERT INTO kinds VALUES (1, {values})",
            database=schema,
        )
    feed = feed_file(tmp_path, servers, [f"{schema}.t", f"{schema}.kinds"])
    with serving(server_file(tmp_path, feed, tls=certificate.tls())) as served:
        place = f"localhost:{served.port}"
        python = [sys.executable, EXAMPLES / "follow.py", place, FEED]
        authority = certificate.certificate
        with (
            following(python, authority, PYTHONPATH=path_with(generated)) as one,
            following([in_go, place, FEED], authority) as other,
        ):
            one.until(copied)
            other.until(copied)
            for server in servers.values():
                _written(server, schema)
            one.until(ended(len(servers)))
            other.until(ended(len(servers)))
    for shard in servers:
        mine = plain(one.events, shard)
        assert mine == plain(other.events, shard)
        told = {name for event in mine for name in event}
        assert told == {"begin", "field", "rows", "lastPk", "commit", "copyCompleted", "ddl"}
    rows = [event["rows"] for event in one.events if "rows" in event]
    widths = {
        len(told["rows"][0].get("after", {}).get("values", ()))
        for told in rows
        if told["table"]["name"] == "kinds"
    }
    assert len(CASES) + 1 in widths


def test_a_wrong_token_ends_the_example(
    tmp_path: Path, feed: Path, generated: Path, certificate: Certificate
) -> None:
    with serving(server_file(tmp_path, feed, tls=certificate.tls())) as served:
        command = [sys.executable, str(EXAMPLES / "follow.py"), f"localhost:{served.port}", FEED]
        env = {
            **os.environ,
            "STREAM_TOKEN": "wrong",
            "STREAM_CA": str(certificate.certificate),
            "PYTHONPATH": path_with(generated),
        }
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("UNAUTHENTICATED: no feed of that name is open to this token")
