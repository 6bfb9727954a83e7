"""Streams of shards that lag behind others stay together, to the times that their logs have (seed 003)."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

import catchment
from catchment.serve.stream.events import Batch, Commit, VGtid
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.stream import Stream
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of
from tests.world.servers.chosen import chosen_server

SECONDS, LAG, TOLERANCE = 8, 6, 1  # times of logs are whole seconds


def _written(servers: Servers, schema: str, *, lag: int) -> None:
    """A transaction each quarter of a second on every shard; those of the first are dated as a replica's that lags."""
    late = next(iter(servers))
    ends = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < ends:
        number += 1
        for name, server in servers.items():
            behind = lag if name == late else 0
            server.sql(
                f"SET timestamp = UNIX_TIMESTAMP() - {behind}",
                f"INSERT INTO t VALUES ({number})",
                database=schema,
            )
        time.sleep(0.25)


@pytest.mark.promise("with minimize_skew no shard runs ahead of one that lags")
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("batches", [True, pytest.param(False, marks=pytest.mark.wide)])
def test_a_backlog_of_a_lagging_shard(
    servers: Servers, fresh_schema: Callable[..., str], *, aligned: bool, batches: bool
) -> None:
    """All of it was written while nobody read. Told apart, the shards would be seconds apart at once."""
    schema = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql("CREATE TABLE t (id INT PRIMARY KEY)", database=schema)
    rules = [f"{schema}.t"]
    with catchment.stream(source_of(servers), vgtid="current", rules=rules) as stream:
        begin = next(stream)
    assert isinstance(begin, VGtid)
    _written(servers, schema, lag=LAG)
    flags = Flags(minimize_skew=aligned)
    want = sum(server.sql(f"SELECT COUNT(*) FROM {schema}.t")[0][0] for server in servers.values())
    with catchment.stream(source_of(servers), vgtid=begin.text, rules=rules, flags=flags) as stream:
        times = _told(_batched(stream) if batches else _committed(stream), want)
    skew = max(_ahead(times))
    if aligned:
        assert skew <= 2 + TOLERANCE
    else:
        assert skew > 2 + TOLERANCE, "the test shows nothing: without the flag the shards were together, too"


@pytest.mark.wide
@pytest.mark.parametrize("count", [8])
def test_shards_that_lag_while_all_are_written(count: int) -> None:
    """The first lags by six seconds. Once that is known, none is told ahead of what another has
    still to tell, and the stream does not stall."""
    password = secrets.token_hex(12)
    with ExitStack() as stack:
        servers = {
            f"s{number}": stack.enter_context(chosen_server(server_id=171 + number, password=password))
            for number in range(count)
        }
        for server in servers.values():
            server.sql("CREATE DATABASE lagging", "CREATE TABLE lagging.t (id INT PRIMARY KEY)")
        flags = Flags(minimize_skew=True, heartbeat_interval=0.5)
        rules = ["lagging.t"]
        with catchment.stream(source_of(servers), vgtid="current", rules=rules, flags=flags) as stream:
            assert isinstance(next(stream), VGtid)
            writers = threading.Thread(target=_written, args=(servers, "lagging"), kwargs={"lag": LAG})
            writers.start()
            told: list[tuple[float, tuple[str, int]]] = []
            for event in stream:
                if isinstance(event, Commit):
                    told.append((time.time(), (event.shard, event.time)))
                if not writers.is_alive() and len(told) >= _rows(servers, "lagging.t"):
                    break
            writers.join()
    begun = told[0][0] + LAG
    times = [commit for at, commit in told if at >= begun]
    assert len(times) > count * SECONDS, "too little is told behind the time in which the lag is found out"
    assert max(_ahead(times)) <= 2 + TOLERANCE


def _rows(servers: Servers, table: str) -> int:
    return sum(server.sql(f"SELECT COUNT(*) FROM {table}")[0][0] for server in servers.values())


def _committed(stream: Stream) -> Iterator[tuple[str, int]]:
    return ((event.shard, event.time) for event in stream if isinstance(event, Commit))


def _batched(stream: Stream) -> Iterator[tuple[str, int]]:
    for part in stream.batches():
        if isinstance(part, Batch):
            for at in part.rows.column("_commit_timestamp").to_pylist():
                yield part.shard, int(at.timestamp())


def _told(commits: Iterator[tuple[str, int]], want: int) -> list[tuple[str, int]]:
    """Shards and times of the first so many transactions."""
    return [next(commits) for _ in range(want)]


def _ahead(told: Sequence[tuple[str, int]]) -> Iterator[int]:
    """By how much each transaction was ahead of the oldest one that another shard had still to tell."""
    rest: dict[str, list[int]] = {}
    for shard, at in told:
        rest.setdefault(shard, []).append(at)
    for shard, at in told:
        rest[shard].remove(at)
        yield max((at - left[0] for other, left in rest.items() if other != shard and left), default=0)
