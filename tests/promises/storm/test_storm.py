"""A storm of DDL: random statements of every kind, and swaps by real tools, under load on two shards.

Every epoch is judged by the replayed log, and those at which the load rested by SELECT. CATCHMENT_STORM_SEED turns a
storm again: the same statements in the same order, as far as the servers' own timing lets them.
"""

import os
import secrets
from collections.abc import Callable, Collection, Iterator
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
_FEW = (
    "truncate",
    "truncate_partition",
    "add_with_value",
    "modify",
    "rename_column",
    "create",
    "drop",
    "drop_and_create",
    "rename_and_back",
)
_FEWER = ("truncate", "modify", "create")  # beside both tools, which take their time


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


@pytest.fixture(params=["chosen", "both tools"])
def shards_of_a_storm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Servers]:
    """Two shards of the kind that the run is against, and of the nearest one with which both tools work."""
    if request.param == "both tools":
        monkeypatch.setenv(VARIABLE, "mysql-9.7" if on_mysql() else "mariadb-11.8")
    small = {"max_binlog_size": 65536}
    with (
        chosen_server(server_id=121, password="t", settings=small) as first,
        chosen_server(server_id=122, password="t", settings=small) as second,
    ):
        yield {"-80": first, "80-": second}


@pytest.fixture
def storm_of(
    shards_of_a_storm: Servers, fresh_schema: Callable[..., str], tmp_path: Path
) -> Callable[[int], Storm]:
    """A storm of a seed, unless the environment names another one."""
    schema = fresh_schema(*shards_of_a_storm.values())

    def made(seed: int) -> Storm:
        chosen = int(os.environ.get(_SEED) or seed)
        return Storm(shards_of_a_storm, schema, tmp_path, swaps_for(chosen_kind()), chosen)

    return lambda seed: had(lambda: made(seed))


@pytest.mark.wide
def test_a_few_epochs_of_a_storm(storm_of: Callable[[int], Storm]) -> None:
    tools = OF_SERVERS[chosen_kind()]
    must_hold(storm_of(37), 10, [*(_FEW if len(tools) < 2 else _FEWER), *tools])


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_300_epochs_of_a_storm(storm_of: Callable[[int], Storm]) -> None:
    storm = storm_of(secrets.randbelow(10**6))
    verdict = must_hold(storm, 300, storm.deeds)
    assert verdict.stale > 30
    assert verdict.renewed >= 5
    assert verdict.plain > 30
