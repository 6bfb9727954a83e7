"""Streams of shards that lag behind others stay together, to the times that their logs have (seed 003)."""

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

import catchment
from catchment.serve.stream.events import Commit, VGtid
from catchment.serve.stream.flags import Flags
from tests.promises.stream.conftest import Servers
from tests.promises.stream.sources import source_of

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


@pytest.mark.parametrize("aligned", [True, False])
def test_a_backlog_of_a_lagging_shard(
    servers: Servers, fresh_schema: Callable[..., str], *, aligned: bool
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
    times: list[tuple[str, int]] = []
    want = sum(server.sql(f"SELECT COUNT(*) FROM {schema}.t")[0][0] for server in servers.values())
    with catchment.stream(source_of(servers), vgtid=begin.text, rules=rules, flags=flags) as stream:
        while len(times) < want:
            event = next(stream)
            if isinstance(event, Commit):
                times.append((event.shard, event.time))
    skew = max(_ahead(times))
    if aligned:
        assert skew <= 2 + TOLERANCE
    else:
        assert skew > 2 + TOLERANCE, "the test shows nothing: without the flag the shards were together, too"


def _ahead(told: Sequence[tuple[str, int]]) -> Iterator[int]:
    """By how much each transaction was ahead of the oldest one that another shard had still to tell."""
    rest: dict[str, list[int]] = {}
    for shard, at in told:
        rest.setdefault(shard, []).append(at)
    for shard, at in told:
        rest[shard].remove(at)
        yield max((at - left[0] for other, left in rest.items() if other != shard and left), default=0)
