"""A shard that cannot be read holds up itself alone: epochs close without it and name it, and no row of it is lost."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from catchment import epochs, read
from catchment.config import Feed, load
from catchment.epoch import gather
from catchment.feed import clock, loop, tries
from catchment.model import retries
from catchment.model.epoch import Manifest
from catchment.model.errors import ConnectionLost
from catchment.model.position import LogOffset
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import make_feed
from tests.promises.exact.night import Night, status_of
from tests.promises.exact.steps import run_here
from tests.world.patience import PATIENCE_SECONDS
from tests.world.proxy import Proxy

Shown = list[tuple[str, int, int]]
MakeFeed = Callable[[str], Feed]


@pytest.fixture
def proxy(servers: Servers) -> Iterator[Proxy]:
    """In front of the shard `-80`."""
    with Proxy(servers["-80"].host, servers["-80"].port) as proxy:
        yield proxy


@pytest.fixture
def schema(servers: Servers, fresh_schema: Callable[..., str]) -> str:
    """With a table `t` of fifty rows on each shard."""
    name = fresh_schema(*servers.values())
    for server in servers.values():
        rows = ", ".join(f"({key}, 0)" for key in range(50))
        server.sql(
            f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)", f"INSERT INTO {name}.t VALUES {rows}"
        )
    return name


@pytest.fixture
def make(
    servers: Servers, schema: str, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MakeFeed:
    """A feed with that `away_max`, whose shard `-80` is behind the proxy."""
    run_here(monkeypatch)

    def made(away_max: str) -> Feed:
        make_feed(tmp_path, servers, schema, chunk_rows=1000, interval="50ms")
        described = yaml.safe_load((tmp_path / "feed.yaml").read_text())
        described["source"]["shards"][0].update(host=proxy.host, port=proxy.port)
        described["epoch"]["away_max"] = away_max
        (tmp_path / "feed.yaml").write_text(yaml.safe_dump(described))
        return load(tmp_path / "feed.yaml")

    return made


def shown(feed: Feed, schema: str) -> Shown:
    rows = read(feed, f"{schema}.t").arrow().to_pylist()
    return sorted((row["_shard"], row["id"], row["v"]) for row in rows)


def held(servers: Servers, schema: str) -> Shown:
    return sorted(
        (shard, *row)
        for shard, server in servers.items()
        for row in server.sql(f"SELECT id, v FROM {schema}.t")
    )


def write(servers: Servers, schema: str, value: int) -> None:
    """Change, insert and delete rows on both shards."""
    for server in servers.values():
        server.sql(
            f"UPDATE {schema}.t SET v = {value} WHERE id < 20",
            f"INSERT INTO {schema}.t VALUES ({1000 + value}, {value})",
            f"DELETE FROM {schema}.t WHERE id = {20 + value}",
        )


def of(shard: str, rows: Shown) -> Shown:
    return [row for row in rows if row[0] == shard]


def shown_of_the_other(night: Night, servers: Servers, schema: str) -> Shown:
    """What the lake shows once it has all that `80-` has."""
    now = of("80-", held(servers, schema))
    return night.awaited(
        "changes of 80-", lambda: shown(night.feed, schema), lambda rows: of("80-", rows) == now
    )


@pytest.mark.promise("an unreachable shard holds up only itself")
def test_the_others_go_on_and_it_catches_up(
    servers: Servers, schema: str, proxy: Proxy, make: MakeFeed
) -> None:
    """A shard that refuses; a run that begins while it does; and one that hangs."""
    feed = make("10min")
    with Night(feed) as night:
        night.begun()
        must_catch_up(night, servers, schema, proxy, "refuses", 0)
    assert night.error is None
    assert not epochs(feed)[0].absent
    assert any(epoch.absent for epoch in epochs(feed, limit=10_000))
    proxy.refusing = True
    proxy.cut(reset=True)
    before = shown(feed, schema)
    write(servers, schema, 4)
    with Night(feed) as night:
        rows = shown_of_the_other(night, servers, schema)
        assert of("-80", rows) == of("-80", before)
        proxy.refusing = False
        night.awaited("all changes", lambda: shown(feed, schema), lambda rows: rows == held(servers, schema))
        must_catch_up(night, servers, schema, proxy, "hangs", 5)
    assert night.error is None
    proxy.refusing = True
    with Night(make("0s")) as night:
        night.wait()
    assert isinstance(night.error, ConnectionLost)


def must_catch_up(night: Night, servers: Servers, schema: str, proxy: Proxy, how: str, value: int) -> None:
    """The shard goes: epochs close without it and name it. It comes back: no row of it is lost."""
    feed = night.feed
    night.awaited("the copy", lambda: shown(feed, schema), lambda rows: rows == held(servers, schema))
    before = shown(feed, schema)
    if how == "refuses":
        proxy.refusing = True
        proxy.cut(reset=True)
    else:
        proxy.stall()
    for number in (value, value + 1):
        write(servers, schema, number)
        rows = shown_of_the_other(night, servers, schema)
        assert of("-80", rows) == of("-80", before)
    found = night.awaited("who is away", night.status, lambda status: "-80" in status.absent)
    assert list(found.absent) == ["-80"]
    assert list(epochs(feed)[0].absent) == ["-80"]
    proxy.refusing = False
    proxy.flow()
    write(servers, schema, value + 2)
    night.awaited("all changes", lambda: shown(feed, schema), lambda rows: rows == held(servers, schema))
    night.awaited("nobody away", night.status, lambda status: not status.absent)


def test_epochs_wait_for_all_where_the_feed_says_so(
    servers: Servers, schema: str, proxy: Proxy, make: MakeFeed
) -> None:
    feed = make("0s")
    with Night(feed) as night:
        night.begun()
        before = shown(feed, schema)
        proxy.refusing = True
        proxy.cut(reset=True)
        night.awaited("tries", night.status, lambda s: any(t.tries > 3 for t in s.troubles))
        write(servers, schema, 1)
        night.awaited("more tries", night.status, lambda s: any(t.tries > 9 for t in s.troubles))
        assert shown(feed, schema) == before
        proxy.refusing = False
        night.awaited("all changes", lambda: shown(feed, schema), lambda rows: rows == held(servers, schema))
    assert night.error is None
    assert not any(epoch.absent for epoch in epochs(feed, limit=10_000))


def test_a_shard_that_stays_away_is_waited_for(
    servers: Servers, schema: str, proxy: Proxy, make: MakeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For ever, with growing pauses, where the feed file sets no limit; and the run ends at once when it is told to."""
    monkeypatch.setattr(clock, "SILENT_SECONDS_MAX", 1.0)
    monkeypatch.setattr(retries, "TIMES_MAX", 3)
    paused: list[float] = []
    really = retries.pause_seconds

    def noted(failures: int) -> float:
        paused.append(really(failures))
        return paused[-1]

    monkeypatch.setattr(tries, "pause_seconds", noted)
    feed = make("0s")
    with Night(feed) as night:
        night.begun()
        proxy.refusing = True
        proxy.cut(reset=True)
        night.awaited("long pauses", lambda: list(paused), lambda found: bool(found) and max(found) >= 4.0)
        assert night.error is None
        assert sorted(paused[-3:]) == paused[-3:]
        proxy.refusing = False
        write(servers, schema, 1)
        night.awaited("all changes", lambda: shown(feed, schema), lambda rows: rows == held(servers, schema))
        proxy.refusing = True
        proxy.cut(reset=True)
    assert night.error is None


def test_a_shard_that_stays_away_for_too_long_ends_the_run(
    servers: Servers,
    schema: str,
    proxy: Proxy,
    make: MakeFeed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "SILENT_SECONDS_MAX", 4.0)
    monkeypatch.setattr(retries, "TIMES_MAX", 3)
    make("12s")
    described = yaml.safe_load((tmp_path / "feed.yaml").read_text())
    described["epoch"]["wait_max"] = "1s"
    (tmp_path / "feed.yaml").write_text(yaml.safe_dump(described))
    feed = load(tmp_path / "feed.yaml")
    with Night(feed) as night:
        night.begun()
        proxy.refusing = True
        proxy.cut(reset=True)
        write(servers, schema, 1)
        shown_of_the_other(night, servers, schema)
        night.wait()
    assert isinstance(night.error, ConnectionLost)
    assert "shard -80" in str(night.error)
    assert list(status_of(feed).absent) == ["-80"]


def test_a_cut_that_an_absent_shard_has_not_reached_is_found(
    servers: Servers, schema: str, proxy: Proxy, make: MakeFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This test's eyes: where an absent shard is taken to stand at its log's end, the lake lacks what was before it."""
    feed = make("10min")
    real = gather.manifest
    due, planted = threading.Event(), threading.Event()

    def at_the_end(*args: Any) -> Manifest:
        made = real(*args)
        if not (due.is_set() and "-80" in made.absent):
            return made
        due.clear()  # once: what is written behind it arrives
        states = dict(made.cut.shards)
        end = LogOffset(*servers["-80"].log_end())
        position = replace(states["-80"].position, at=end, event=None)
        states["-80"] = replace(states["-80"], position=position)
        planted.set()
        return replace(made, cut=replace(made.cut, shards=states))

    monkeypatch.setattr(loop, "manifest", at_the_end)
    with Night(feed) as night:
        night.begun()
        proxy.refusing = True
        proxy.cut(reset=True)
        write(servers, schema, 1)
        due.set()
        assert planted.wait(PATIENCE_SECONDS)
        proxy.refusing = False
        servers["-80"].sql(f"INSERT INTO {schema}.t VALUES (77, 77)")
        night.awaited("the newest row", lambda: shown(feed, schema), lambda rows: ("-80", 77, 77) in rows)
        assert shown(feed, schema) != held(servers, schema)
