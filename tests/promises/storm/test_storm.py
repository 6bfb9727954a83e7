"""A storm of DDL: random statements of every kind, and swaps by real tools, under load on two shards.

Every epoch is judged by the replayed log, and those at which the load rested by SELECT. CATCHMENT_STORM_SEED turns a
storm again: the same statements in the same order, as far as the servers' own timing lets them.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.feed.verify import verify
from tests.conftest import had
from tests.promises.exact.conftest import Servers
from tests.promises.exact.verdict import Verdict
from tests.promises.storm.storm import Storm
from tests.promises.storm.swaps import swaps_for
from tests.world.engines import Here
from tests.world.servers.chosen import VARIABLE, chosen_kind, chosen_server, on_mysql

_SEED = "CATCHMENT_STORM_SEED"


def stormed(servers: Servers, schema: str, directory: Path, seed: int, epochs: int) -> tuple[Storm, Verdict]:
    """A storm of so many epochs, and the verdict; what the feed has in the end is what the shards have."""
    seed = int(os.environ.get(_SEED) or seed)
    storm = Storm(servers, schema, directory, had(lambda: swaps_for(chosen_kind())), seed)
    verdict = storm.blow(epochs, all_kinds=epochs >= 100)
    verdict.must_be_clean(seed)
    compared = verify(storm.feed, {one.shard: one for one in storm.feed.endpoints()}, Here())
    assert compared.differences == 0, compared.found
    assert verdict.epochs >= epochs
    assert verdict.rests > 0
    print(f"seed {seed}: {verdict}; {dict(storm.done)}")
    return storm, verdict


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


@pytest.mark.wide
def test_a_few_epochs_of_a_storm(
    shards_of_a_storm: Servers, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    schema = fresh_schema(*shards_of_a_storm.values())
    stormed(shards_of_a_storm, schema, tmp_path, seed=51, epochs=10)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_300_epochs_of_a_storm(
    shards_of_a_storm: Servers, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    schema = fresh_schema(*shards_of_a_storm.values())
    storm, verdict = stormed(shards_of_a_storm, schema, tmp_path, seed=secrets.randbelow(10**6), epochs=300)
    assert verdict.stale > 30
    assert verdict.renewed >= 5
    assert verdict.plain > 30
    assert set(storm.done) == set(storm.deeds)
