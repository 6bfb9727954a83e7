"""The network breaks off in a SELECT and in a dump, for a while, or leads to another server."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkTask, SegmentTask, Target
from catchment.model.chunk import Chunk
from catchment.model.errors import OtherServer
from catchment.readers.changes import read_segment
from catchment.readers.copy import read_group
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.first_cut import originate
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, ends, goes_on_without, written
from tests.world.patience import until
from tests.world.proxy import Proxy, dump_begins, execute_begins

EVER = 1_000_000


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


@pytest.mark.promise("a shard that was unreachable is read from where the feed left it")
def test_connections_cut_in_selects_and_dumps_and_a_shard_that_is_away_for_a_while(
    pair: dict[str, PrivateServer], live: MakeLife, proxy: Proxy
) -> None:
    """The logs go on while no SELECT comes to its end, and the other shard's while no dump does."""
    life = through(proxy, live(pair))
    life.load(100)
    proxy.cut_after(300, after=execute_begins(), times=EVER, reset=True)
    run = life.told()
    with written(life):
        until("SELECTs are cut", lambda: proxy.cuts > 3)
        run.wait_for_log(ends(pair), copied=False, absent=[])
        proxy.cut_after(0, times=0)
        run.wait_for("caught_up")
        for reset in (False, True):
            proxy.cut_after(150, after=dump_begins, times=EVER, reset=reset)
            run.wait("no dump of it ends", lambda event: event["event"] == "epoch" and event["absent"])
            goes_on_without(run, "-80", pair)
            proxy.cut_after(0, times=0)
            run.wait("an epoch with it", lambda event: event["event"] == "epoch" and not event["absent"])
        proxy.refusing = True
        proxy.cut(reset=True)
        run.wait_for("shard", shard="-80", state="away")
        goes_on_without(run, "-80", pair)
        proxy.refusing = False
        run.wait_for("shard", shard="-80", state="back")
    run.wait_for_log(ends(pair))
    run.process.terminate()
    run.ended()
    life.must_be_exact()


@pytest.mark.promise(
    "every session of every task makes sure that it reaches the server whose log was read before"
)
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
    sessions = proxy.accepted - begun
    assert sessions > 0
    for number in range(1, sessions + 1):
        proxy.misroute(proxy.accepted + number, pair["80-"].host, pair["80-"].port)
        with pytest.raises(OtherServer, match="is now server_id 122"):
            read_group(copy)
    proxy.misroute(proxy.accepted + 1, pair["80-"].host, pair["80-"].port)
    with pytest.raises(OtherServer, match="is now server_id 122"):
        read_segment(follow)
