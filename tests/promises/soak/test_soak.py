"""A shop with cascades on two shards for a while: all that it stands on fails in turn, and every epoch is exact."""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import had
from tests.promises.soak.soak import Soak, soaked
from tests.promises.soak.troubles import TROUBLES
from tests.suite.drawn import drawn
from tests.world.s3.bucket import Bucket, in_environment
from tests.world.s3.gateway import versity
from tests.world.s3.server import S3Server
from tests.world.servers.postgres import PrivatePostgres

_SECONDS = "CATCHMENT_SOAK_SECONDS"
_HOUR = 3600.0
# What a feed may take more at the end of an hour than after a quarter of it.
_GROWTH = 1.5


@pytest.fixture
def soak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Soak]:
    """An open shop; the seed is printed, and drawn from the commit."""
    seed = drawn("soak", 10**6)
    print(f"seed {seed}")
    with ExitStack() as stack:
        s3 = stack.enter_context(S3Server(had(versity)))
        store = stack.enter_context(had(PrivatePostgres))
        bucket: Bucket = stack.enter_context(s3.fresh_bucket())
        stack.enter_context(in_environment(bucket, monkeypatch))
        yield Soak(tmp_path, seed, store, s3, bucket, stack)


def rounds(soak: Soak, chance: random.Random, seconds: float) -> Counter[str]:
    """Every trouble once in a round, until so many seconds have passed; how often each came."""
    came: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while not came or time.monotonic() < end:
        for name in chance.sample(list(TROUBLES), len(TROUBLES)):
            print(f"{time.monotonic() - end + seconds:.0f} s: {name}", flush=True)
            TROUBLES[name](soak)
            soak.goes_on()
            came[name] += 1
            if chance.random() < 0.3:
                soak.heals()
        soak.rest()
    return came


@pytest.mark.mariadb("the judge knows what foreign keys of a MariaDB do")
@pytest.mark.promise(
    "a shop's feed outlives restarts, rotations, losses and DDL around it, exact at every epoch"
)
@pytest.mark.wide
def test_a_round_of_all_troubles(soak: Soak) -> None:
    with soaked(soak):
        came = rounds(soak, soak.chance, 0)
    verdict = soak.verdict()
    verdict.must_be_clean(0)
    assert came.keys() == TROUBLES.keys()
    assert verdict.rests == len(soak.rests)
    assert verdict.stale > 0


@pytest.mark.mariadb("the judge knows what foreign keys of a MariaDB do")
@pytest.mark.long
@pytest.mark.timeout(4 * _HOUR)
def test_an_hour(soak: Soak) -> None:
    with soaked(soak):
        came = rounds(soak, soak.chance, float(os.environ.get(_SECONDS, _HOUR)))
    print(came)
    for sizes in soak.sizes:
        print(sizes)
    verdict = soak.verdict()
    print(verdict)
    verdict.must_be_clean(0)
    early, late = soak.sizes[len(soak.sizes) // 4], soak.sizes[-1]
    assert late.memory < _GROWTH * early.memory
    assert late.store < _GROWTH * early.store
