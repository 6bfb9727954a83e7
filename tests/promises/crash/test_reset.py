"""RESET MASTER behind our back is named as another log, however alike it is; other RESETs are harmless."""

import re
import time
from collections.abc import Iterator

import pytest
from pyspark import SparkContext

from catchment.demo.server import PrivateServer
from catchment.model.errors import Diverged
from catchment.model.position import Position
from catchment.source.first_cut import originate
from catchment.source.identity import must_be_same_log
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.promises.exact.feedrun import FeedRun
from tests.world.servers.chosen import chosen_server

TRIES = 20


@pytest.fixture(scope="module")
def own() -> Iterator[dict[str, PrivateServer]]:
    """A shard whose log these tests reset."""
    with chosen_server(server_id=131) as server:
        yield {"-80": server}


def first_position(life: Life) -> Position:
    """The position of a new feed's first cut on the only shard."""
    endpoints = {endpoint.shard: endpoint for endpoint in life.feed.endpoints()}
    return originate("life", endpoints, lambda table: table.schema == life.schema, 0).cut.positions["-80"]


def just_after_the_second() -> None:
    """Wait until a second has just begun."""
    time.sleep(1.02 - time.time() % 1)


def test_a_log_reset_during_a_pause_is_another_log(
    own: dict[str, PrivateServer], spark: SparkContext, live: MakeLife
) -> None:
    life = live(own)
    life.load(50)
    assert life.run() == 0
    life.servers["-80"].sql("RESET MASTER")
    for step in range(30):  # beyond the old position
        life.touch(step)
    assert life.run() == 0
    assert life.waiting().keys() == life.keys.keys()
    assert all("was reset" in reason for reason in life.waiting().values())
    life.copy_again()
    life.must_be_exact()


@pytest.mark.parametrize("busy", [True, False], ids=["busy", "idle"])
def test_a_log_reset_under_a_running_feed_is_another_log(
    pair: dict[str, PrivateServer],
    own: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    busy: bool,
) -> None:
    life = live({**own, "80-": pair["80-"]})
    life.load(50)

    with FeedRun(life.feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        own["-80"].sql("RESET MASTER")
        with written(life, shard=None if busy else "80-"):
            newest = run.wait("stale tables", lambda epochs: bool(epochs[-1].stale))
            count = len(run.epochs)
            run.wait_for_epochs(count + 2)
    assert re.search("shard -80.*reset", newest.stale[0].reason)
    assert life.waiting().keys() == life.keys.keys()
    life.copy_again()
    life.must_be_exact()


def test_a_log_reset_twice_in_a_second_is_told_by_the_count(
    own: dict[str, PrivateServer], live: MakeLife
) -> None:
    life = live(own)
    for _ in range(TRIES):
        just_after_the_second()
        own["-80"].sql("RESET MASTER")
        position = first_position(life)
        own["-80"].sql("RESET MASTER")
        if first_position(life).born == position.born:
            break
    else:
        pytest.skip("the machine is too slow for two resets in a second")
    assert first_position(life).at == position.at
    with pytest.raises(Diverged, match="reset"):
        must_be_same_log(life.feed.endpoints()[0], position)


@pytest.mark.mariadb("RESET QUERY CACHE")
def test_resets_that_leave_the_log_alone_are_harmless(own: dict[str, PrivateServer], live: MakeLife) -> None:
    life = live(own)
    life.load(5)
    just_after_the_second()
    position = first_position(life)
    endpoint = life.feed.endpoints()[0]
    own["-80"].sql("RESET QUERY CACHE", "RESET SLAVE")
    asked = must_be_same_log(endpoint, position)
    assert position.resets is not None
    assert asked.count == position.resets.count + 2


def test_a_restart_of_the_server_is_harmless_however_young_the_file(live: MakeLife) -> None:
    with chosen_server(server_id=132) as server:
        life = live({"-80": server})
        life.load(5)
        just_after_the_second()
        server.sql("FLUSH BINARY LOGS")
        life.touch(1)
        position = first_position(life)
        time.sleep(2)
        server.kill9()
        server.start()
        must_be_same_log(life.feed.endpoints()[0], position)
