"""A lake in an S3 server: killed everywhere, with requests that fail, come twice, and whose answers are lost."""

import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.location import location
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.world.s3.bucket import Bucket, in_environment
from tests.world.s3.faults import Fault, Rule
from tests.world.s3.kinds import Kind
from tests.world.s3.proxy import S3Proxy
from tests.world.s3.server import S3Server

CATCH_UP = ("run", "--until-caught-up")
PLACES = (
    "between-applies:1",
    "after-plan:2",
    "after-manifest:2",
    "between-applies:3",
    "after-apply:2",
    "after-epoch-row:2",
    "during-settle:1",
    "during-settle:3",
)
WRITES = frozenset({Kind.PUT, Kind.COPY, Kind.DELETE})
# A run whose requests are given up soon.
IMPATIENT = """
from catchment.sink.storage import objects; objects._RETRY_SECONDS = 0.5
from catchment.cli.main import main; main()
"""


@pytest.fixture
def objects(
    pair: dict[str, PrivateServer],
    live: MakeLife,
    s3_server: S3Server,
    bucket: Bucket,
    s3_proxy: S3Proxy,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Life]:
    """A feed whose lake is in a bucket. Commands go by the proxy. It is a thread of this process, and delta-rs keeps
    other threads waiting while it reads: so the judge asks the server itself."""
    with in_environment(bucket, monkeypatch):
        lake = location(f"s3://{bucket.name}/some/lake")
        life = live(pair, store=(lake, s3_server.root / bucket.name / "some" / "lake"))
        life.environment = {"AWS_ENDPOINT_URL": s3_proxy.endpoint}
        life.load(100)
        yield life


def test_a_driver_killed_at_every_place_goes_on_exactly(objects: Life) -> None:
    objects.describe(engine="local")
    with written(objects):
        for place in PLACES:
            ended = objects.command(*CATCH_UP, fault=place)
            assert ended.code == -signal.SIGKILL, f"{place}: {ended}"
    assert objects.command(*CATCH_UP).code == 0
    objects.must_be_exact()
    assert objects.command("settle").code == 0
    objects.must_be_exact()


def test_requests_that_fail_come_twice_or_whose_answers_are_lost(objects: Life, s3_proxy: S3Proxy) -> None:
    objects.describe(engine="local")
    s3_proxy.rule(
        Rule(Fault.LOSE, kinds=WRITES, chance=0.1, seed=1),
        Rule(Fault.LOSE_WITH_ERROR, kinds=WRITES, chance=0.1, seed=2),
        Rule(Fault.TWICE, kinds=WRITES, chance=0.1, seed=3),
        Rule(Fault.SLOW_DOWN, chance=0.05, seed=4),
        Rule(Fault.DROP, chance=0.05, seed=5),
        Rule(delay=0.01),
    )
    with written(objects):
        for _ in range(3):
            ended = objects.command(*CATCH_UP)
            assert ended.code == 0, ended
    assert objects.command(*CATCH_UP).code == 0
    objects.must_be_exact()
    met = Counter(seen.fault for seen in s3_proxy.seen())
    assert min(met[fault] for fault in (Fault.LOSE, Fault.LOSE_WITH_ERROR, Fault.TWICE)) > 0, met


def test_a_store_that_is_gone_for_longer_than_requests_are_repeated(
    objects: Life, s3_proxy: S3Proxy, pair: dict[str, PrivateServer]
) -> None:
    objects.describe(engine="local")
    run = objects.told(program=IMPATIENT)
    run.wait_for("caught_up")
    with written(objects):
        for fault in (Fault.DROP, Fault.ERROR):
            s3_proxy.rule(Rule(fault))
            run.wait_for("away", what="the lake", state="away")
            s3_proxy.rule()
            run.wait_for("away", what="the lake", state="back")
            run.wait_for("epoch")
    run.wait_for_log({name: server.log_end() for name, server in pair.items()})
    run.process.terminate()
    run.ended()
    objects.must_be_exact()
