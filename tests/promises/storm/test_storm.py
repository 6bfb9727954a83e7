"""A storm of DDL: random statements of every kind, and swaps by real tools, under load on two shards.

Every epoch is judged by the replayed log, and those at which the load rested by SELECT. CATCHMENT_STORM_SEED turns a
storm of that seed: the same statements in the same order, as far as the servers' own timing lets them. The kinds of DDL
that have a trial of their own elsewhere have no random one: they meet each other here.
"""

import os
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catchment.feed.verify import verify
from tests.conftest import had
from tests.promises.exact.conftest import Servers
from tests.promises.exact.verdict import Verdict
from tests.promises.storm.storm import Storm
from tests.promises.storm.swaps import OF_SERVERS, swaps_for
from tests.world.engines import Here
from tests.world.servers.chosen import VARIABLE, chosen_kind, chosen_server, on_mysql

_SEED = "CATCHMENT_STORM_SEED"
_FEW = ("truncate", "modify", "create")  # beside both tools, which take their time


def must_hold(storm: Storm, epochs: int, kinds: Collection[str]) -> Verdict:
    """The verdict on a storm of so many epochs and these kinds. What the feed has in the end, the shards have."""
    verdict = storm.blow(epochs, kinds)
    verdict.must_be_clean(storm.seed)
    compared = verify(storm.feed, {one.shard: one for one in storm.feed.endpoints()}, Here())
    assert compared.differences == 0, compared.found
    assert verdict.epochs >= epochs
    assert verdict.rests > 0
    print(f"seed {storm.seed}: {verdict}; {dict(storm.done)}")
    return verdict


@contextmanager
def shards(patch: pytest.MonkeyPatch, *, both_tools: bool) -> Iterator[Servers]:
    """Two shards of the kind that the run is against, or of the nearest one with which both tools work."""
    if both_tools:
        patch.setenv(VARIABLE, "mysql-9.7" if on_mysql() else "mariadb-11.8")
    small = {"max_binlog_size": 65536}
    with (
        chosen_server(server_id=121, password="t", settings=small) as first,
        chosen_server(server_id=122, password="t", settings=small) as second,
    ):
        yield {"-80": first, "80-": second}


@pytest.fixture(params=["chosen", "both tools"])
def storm(
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Storm]:
    """A storm of the seed that the environment names; without one of the same always, and in long runs of any."""
    drawn = secrets.randbelow(10**6) if request.node.get_closest_marker("long") else 37
    seed = int(os.environ.get(_SEED) or drawn)
    with shards(monkeypatch, both_tools=request.param == "both tools") as servers:
        schema = fresh_schema(*servers.values())
        yield had(lambda: Storm(servers, schema, tmp_path, swaps_for(chosen_kind()), seed))


def test_a_storm(storm: Storm) -> None:
    """Every kind of DDL at least once; with both tools, what they swap beside a few kinds."""
    tools = OF_SERVERS[chosen_kind()]
    kinds = storm.deeds.keys() if len(tools) < 2 else {*_FEW, *tools}
    verdict = must_hold(storm, 12, kinds)
    assert verdict.plain > 10


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_300_epochs_of_a_storm(storm: Storm) -> None:
    verdict = must_hold(storm, 300, storm.deeds)
    assert verdict.stale > 30
    assert verdict.renewed >= 5
    assert verdict.plain > 30
