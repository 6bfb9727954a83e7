"""Shards that are reached otherwise, in a run that goes on: another host, port, user or password's file."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import yaml

from catchment.state.store import Store
from catchment.watch.status import Status, read_status
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Rows, Steps, caught_up
from tests.promises.exact.test_applied import applied, follows
from tests.promises.exact.test_orders import newest, running, wait
from tests.promises.serve.server import free_port
from tests.world.proxy import Proxy

PROOF = "INSERT INTO other VALUES ()"
FIRST, SECOND = "-80", "80-"


@pytest.fixture
def steps(
    servers: Servers, fresh_schema: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Steps:
    made = ("CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT)", PROOF)
    return caught_up(monkeypatch, tmp_path, servers, fresh_schema(*servers.values()), *made)


def reached(steps: Steps, shard: str, **address: object) -> None:
    """Have the feed file reach a shard so."""
    described = yaml.safe_load(steps.file.read_text())
    (mine,) = (one for one in described["source"]["shards"] if one["name"] == shard)
    mine.update(address)
    steps.file.write_text(yaml.safe_dump(described))


def status(steps: Steps) -> Status:
    feed = steps.feed
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        return read_status(store)


def of(shard: str, rows: Rows) -> Rows:
    return [row for row in rows if row[0] == shard]


def away(steps: Steps) -> set[str]:
    return {one.shard for one in status(steps).troubles if one.shard}


@contextmanager
def proxies(steps: Steps, count: int) -> Iterator[list[Proxy]]:
    server = steps.servers[FIRST]
    made = [Proxy(server.host, server.port) for _ in range(count)]
    for one in made:
        one.__enter__()
    try:
        yield made
    finally:
        for one in made:
            one.__exit__()


@pytest.mark.promise("a running feed reaches a shard at another address, if it is the same server")
def test_a_server_that_moves_is_followed_where_it_went(steps: Steps, tmp_path: Path) -> None:
    server, other = steps.servers[FIRST], steps.servers[SECOND]
    secret = tmp_path / "password"
    secret.write_text(server.password)
    with proxies(steps, 2) as (before, after):
        reached(steps, FIRST, host=before.host, port=before.port)
        with running(steps):
            follows(steps)
            copies = list(newest(steps).cut.copies)
            before.refusing = True
            before.cut(reset=True)
            wait(lambda: away(steps) == {FIRST})
            reached(steps, FIRST, port=after.port, password={"file": str(secret)})
            said = applied(steps)
            assert said == (
                f"done: the run uses the new source.shards[{FIRST}].password.file, source.shards[{FIRST}].port"
            )
            wait(lambda: not away(steps))
            follows(steps)
            assert list(newest(steps).cut.copies) == copies, "nothing is copied again"
            # Another server is none: the run keeps the address that it had.
            (tmp_path / "theirs").write_text(other.password)
            with Proxy(other.host, other.port) as wrong:
                reached(steps, FIRST, port=wrong.port, password={"file": str(tmp_path / "theirs")})
                said = applied(steps)
                assert said.startswith("refused: "), said
                assert f"shard {FIRST}" in said
                follows(steps)
    assert not newest(steps).stale


def test_an_address_where_nobody_answers_holds_up_its_shard_until_it_is_corrected(steps: Steps) -> None:
    server = steps.servers[FIRST]
    with running(steps):
        follows(steps)
        reached(steps, FIRST, port=free_port())
        assert applied(steps).startswith("done: ")
        wait(lambda: away(steps) == {FIRST})
        before = of(FIRST, steps.lake("other", "id"))
        steps.everywhere(PROOF)
        wait(lambda: of(SECOND, steps.lake("other", "id")) == of(SECOND, steps.source("other", "id")))
        assert set(newest(steps).absent) == {FIRST}
        assert of(FIRST, steps.lake("other", "id")) == before
        reached(steps, FIRST, port=server.port)
        assert applied(steps).startswith("done: ")
        wait(lambda: not away(steps))
        follows(steps)
        ports = {shard: one.port for shard, one in steps.servers.items()}
        for shard in ports:
            reached(steps, shard, port=free_port())
        assert applied(steps).startswith("done: "), "the run waits for all of them, and does not end"
        wait(lambda: status(steps).troubles)
        for shard, port in ports.items():
            reached(steps, shard, port=port)
        assert applied(steps).startswith("done: ")
        wait(lambda: not status(steps).troubles)
        follows(steps)
