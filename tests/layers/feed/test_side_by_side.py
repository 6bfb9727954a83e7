"""Shards are asked side by side: each login waits until all shards have one."""

import threading
from collections.abc import Callable
from typing import cast

import pytest
from msgspec.structs import replace

from catchment import world
from catchment.feed.lost_logs import looked_at
from catchment.feed.planner import Limits, Planner
from catchment.feed.runner import _logs
from catchment.model.cut import Cut
from catchment.model.epoch import LakeColumn, Manifest, Shapes, TableShape
from catchment.model.errors import ConnectionLost
from catchment.model.position import GtidList, LogOffset, Position
from catchment.model.position import Server as ServerId
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import Column, ColumnType, Kind
from catchment.source.each_shard import AT_ONCE, each_shard
from tests.world import records
from tests.world.patience import PATIENCE_SECONDS
from tests.world.sim.calm import Beside, Calm, server_of, tables_of
from tests.world.sim.scheduler import SimWorld
from tests.world.sim.session import Network, SimSession

SHARDS, COLUMNS, ROWS = 3, 2, 5


class _Meeting(Network):
    """Servers at which a login waits for one at each of the others."""

    def __init__(self) -> None:
        servers = {number: server_of(number, 1, COLUMNS, ROWS) for number in range(1, SHARDS + 1)}
        super().__init__(cast(SimWorld, Calm()), servers, 0.0)
        self._all = threading.Barrier(SHARDS)

    def login(self, endpoint: Endpoint, *, snapshots: bool, read_seconds: int) -> SimSession:
        """Raises BrokenBarrierError where the others are not asked meanwhile."""
        self._all.wait(PATIENCE_SECONDS)
        return super().login(endpoint, snapshots=snapshots, read_seconds=read_seconds)


class _Feed:
    """A feed of these servers, of whose only table no row is copied."""

    def __init__(self, servers: Network) -> None:
        (table,) = tables_of(1)
        columns = [Column(name, ColumnType(Kind.BIGINT)) for name in ("id", "c01")]
        shapes = Shapes([TableShape(table, tuple(LakeColumn(c, c.name) for c in columns), ("id",))])
        self.endpoints, states = {}, {}
        for number, server in servers.by_port.items():
            self.endpoints[server.name] = Endpoint(server.name, "sim", number, "catchment", "x")
            at = LogOffset(f"binlog.{server.end()[0]:06}", server.end()[1])
            known = ServerId(server.server_id, server.name, number)
            position = Position(at, server.files[-1].born, known, GtidList.parse(f"0-{number}-2"))
            states[server.name] = ShardState(position, at, (Copy(table),))
        base = records.manifest(1)
        self.standing: Manifest = replace(
            base, cut=Cut(base.cut.epoch, base.cut.time_us, states), shapes=shapes, deltas=()
        )

    def planned(self) -> object:
        limits = Limits(0.5, 100_000, 2, 1 << 26)
        return Planner(self.endpoints, limits).groups(
            self.standing.cut, self.standing.shapes, self.standing.cut.tick
        )


@pytest.mark.parametrize(
    ("ask", "found"),
    [
        (lambda feed: _logs(feed.endpoints), SHARDS),
        (lambda feed: looked_at(feed.endpoints, feed.standing).positions, SHARDS),
        (_Feed.planned, SHARDS),
    ],
    ids=["logs at the start", "where the logs go on", "the plan of an epoch"],
)
def test_nobody_waits_for_another_shard(ask: Callable[[_Feed], dict[str, object]], found: int) -> None:
    servers = _Meeting()
    with world.instead(Beside(servers)):
        assert len(ask(_Feed(servers))) == found


def test_no_more_than_so_many_at_a_time() -> None:
    asking, most, lock = 0, 0, threading.Lock()
    full = threading.Barrier(AT_ONCE)

    def ask(shard: str) -> str:
        nonlocal asking, most
        with lock:
            asking += 1
            most = max(most, asking)
        full.wait(PATIENCE_SECONDS)
        with lock:
            asking -= 1
        return shard

    names = [f"s{number}" for number in range(3 * AT_ONCE)]
    assert each_shard(names, ask) == dict(zip(names, names, strict=True))
    assert most == AT_ONCE


def test_the_first_error_counts_and_no_other_shard_is_asked_then() -> None:
    asked: list[str] = []

    def ask(shard: str) -> None:
        asked.append(shard)
        raise ConnectionLost(shard)

    names = [f"s{number:03}" for number in range(3 * AT_ONCE)]
    with pytest.raises(ConnectionLost, match="s000"):
        each_shard(names, ask)
    assert len(asked) <= AT_ONCE
