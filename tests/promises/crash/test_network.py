"""The network breaks off in a SELECT and in a dump, for a while, or leads to another server."""

import sqlite3
import time
from collections.abc import Iterator
from functools import partial

import msgspec
import pytest
from pyspark import SparkContext

from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkTask, SegmentTask, Target
from catchment.model.chunk import Chunk
from catchment.model.epoch import Manifest, Plan
from catchment.model.errors import OtherServer
from catchment.readers.changes import read_segment
from catchment.readers.copy import read_group
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.first_cut import originate
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.promises.exact.feedrun import FeedRun
from tests.world.proxy import Proxy, dump_begins, execute_begins

ACHE_SECONDS = 3.0


@pytest.fixture
def proxy(pair: dict[str, PrivateServer]) -> Iterator[Proxy]:
    """In front of the shard `-80`."""
    server = pair["-80"]
    with Proxy(server.host, server.port) as proxy:
        yield proxy


def through(proxy: Proxy, life: Life) -> Life:
    """The feed with its shard `-80` behind the proxy."""
    life.describe({"-80": {"port": proxy.port}})
    return life


def has_cut(proxy: Proxy, times: int, _: object) -> bool:
    """Whether the proxy has cut so many connections by now."""
    return proxy.cuts == times


def test_connections_cut_in_selects_and_dumps_are_made_anew(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, proxy: Proxy
) -> None:
    life = through(proxy, live(pair))
    life.load(100)
    proxy.cut_after(300, after=execute_begins(), times=3, reset=True)
    with FeedRun(life.feed) as run:
        with written(life):
            run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
            assert proxy.cuts == 3
            for cuts, reset in ((6, False), (9, True)):
                proxy.cut_after(150, after=dump_begins, times=3, reset=reset)
                run.wait("cuts", partial(has_cut, proxy, cuts))
            proxy.refusing = True
            proxy.cut(reset=True)
            time.sleep(ACHE_SECONDS)
            proxy.refusing = False
        run.wait_for_log(pair)
    life.must_be_exact()


def test_a_chunk_that_fails_in_a_wave_is_copied_later(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, proxy: Proxy
) -> None:
    life = through(proxy, live(pair))
    life.load(240)
    executes = [0]

    def third_of_each_wave(piece: bytes) -> bool:
        executes[0] += execute_begins()(piece)
        return execute_begins()(piece) and executes[0] % 9 == 3

    proxy.cut_after(100, after=third_of_each_wave, times=4)
    with FeedRun(life.feed) as run, written(life):
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
    assert proxy.cuts == 4
    assert broken_waves(life)
    assert life.run() == 0
    life.must_be_exact()


def broken_waves(life: Life) -> list[int]:
    """Epochs that planned several chunks of a shard, some of which counted and some of which did not."""
    with sqlite3.connect(life.state) as store:
        records = store.execute("SELECT kind, record FROM catchment_record").fetchall()
    plans = [msgspec.json.decode(record, type=Plan) for kind, record in records if kind == "plan"]
    manifests = [msgspec.json.decode(record, type=Manifest) for kind, record in records if kind == "manifest"]
    copies = {
        m.epoch: [(shard, copy) for shard, state in m.cut.shards.items() for copy in state.copies]
        for m in manifests
    }
    reached = {epoch: {(s, copy.table, copy.copied) for s, copy in found} for epoch, found in copies.items()}
    done = {epoch: {(s, copy.table) for s, copy in found if copy.done} for epoch, found in copies.items()}
    found = []
    for plan in plans:
        last = {(c.shard, c.table): c for c in plan.chunks}
        whole = {
            place
            for place, chunk in last.items()
            if (*place, chunk.hi) in reached.get(plan.epoch, set()) or place in done.get(plan.epoch, set())
        }
        if plan.epoch in reached and whole and len(whole) < len(last):
            found.append(plan.epoch)
    return found


def test_selects_and_dumps_of_another_server_do_not_count(
    pair: dict[str, PrivateServer], live: MakeLife, proxy: Proxy
) -> None:
    life = through(proxy, live(pair))
    life.load(20)
    endpoints = {endpoint.shard: endpoint for endpoint in life.feed.endpoints()}
    manifest = originate("life", endpoints, lambda table: table.schema == life.schema, 0)
    state, shape = manifest.cut.shards["-80"], manifest.shapes[0]
    target = Target(LakeWriter(life.lake), tuple(endpoints), manifest.epoch + 1, "x")
    chunk = Chunk("-80", shape.table, None, None, last=True)
    at = state.position.at
    copy = ChunkTask(endpoints["-80"], state, at, at, (chunk,), manifest.shapes, target, asks=False)
    follow = SegmentTask(endpoints["-80"], state, at, manifest.shapes, target)
    begun = proxy.accepted
    read_group(copy)
    for number in range(1, proxy.accepted - begun + 1):
        proxy.misroute(proxy.accepted + number, pair["80-"].host, pair["80-"].port)
        with pytest.raises(OtherServer, match="is now server_id 122"):
            read_group(copy)
    proxy.misroute(proxy.accepted + 1, pair["80-"].host, pair["80-"].port)
    with pytest.raises(OtherServer, match="is now server_id 122"):
        read_segment(follow)


def test_a_balancer_between_feed_and_servers_stops_the_run(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife, proxy: Proxy
) -> None:
    life = through(proxy, live(pair))
    life.load(100)

    def run_behind_a_balancer() -> None:
        with FeedRun(life.feed) as run:
            run.wait("an epoch", bool)
            proxy.balance([(s.host, s.port) for s in pair.values()])
            run.wait("an error", lambda epochs: False)

    with pytest.raises(OtherServer, match=r"shard -80.*is now server_id 122"):
        run_behind_a_balancer()
