"""What a whole feed says of itself while a shard is away, while it runs, and when it has ended."""

import json
import logging
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from catchment.config import Feed, load
from catchment.model.errors import SourceError
from catchment.watch.status import Status
from tests.layers.page.test_page import asked
from tests.layers.watch.test_notify import to_file
from tests.layers.watch.test_vitals import samples
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import make_feed
from tests.promises.exact.night import Night, status_of
from tests.promises.exact.steps import run_here
from tests.promises.serve.server import free_port
from tests.world.proxy import Proxy


@pytest.fixture
def proxy(servers: Servers) -> Iterator[Proxy]:
    """In front of the shard `-80`."""
    with Proxy(servers["-80"].host, servers["-80"].port) as proxy:
        yield proxy


@pytest.fixture
def port() -> int:
    """Of the feed's status page."""
    return free_port()


@pytest.fixture
def feed(
    servers: Servers,
    proxy: Proxy,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    port: int,
) -> Feed:
    """A feed of one table whose shard `-80` is behind the proxy; its metrics are in `tmp_path/metrics`."""
    run_here(monkeypatch)
    schema = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", f"INSERT INTO {schema}.t VALUES (1)")
    make_feed(tmp_path, servers, schema, chunk_rows=1000, interval="50ms")
    described = yaml.safe_load((tmp_path / "feed.yaml").read_text())
    described["source"]["shards"][0].update(host=proxy.host, port=proxy.port)
    described |= {"schema_change": "fail", "new_tables": "skip"}
    described["metrics"] = {"file": str(tmp_path / "metrics")}
    described["status"] = {"port": port}
    described["notify"] = {"command": list(to_file(tmp_path / "told"))}
    (tmp_path / "feed.yaml").write_text(yaml.safe_dump(described))
    return load(tmp_path / "feed.yaml")


@pytest.mark.promise("an unreachable shard is reported")
def test_a_shard_that_is_away_for_a_while(
    feed: Feed, proxy: Proxy, tmp_path: Path, caplog: pytest.LogCaptureFixture, port: int
) -> None:
    """Metrics, probes and status say so, each of its shard: the other one is as of now."""
    file = tmp_path / "metrics"
    with caplog.at_level(logging.INFO), Night(feed) as night:
        night.begun()
        night.awaited("a whole lake", lambda: asked(port, "/readyz"), lambda said: said == (200, "ok\n"))
        proxy.refusing = True
        proxy.cut(reset=True)
        found = night.awaited(
            "a shard away", lambda: status_of(feed), lambda s: any(t.tries > 5 for t in s.troubles)
        )
        away = next(trouble for trouble in found.troubles if trouble.shard == "-80")
        assert away.kind == "ConnectionLost"
        assert away.text.startswith(f"shard -80 is away since {away.since} (try {away.tries}): shard -80 at ")
        assert found.runner
        metrics = night.awaited(
            "seconds", lambda: samples(file), lambda m: m["catchment_shard_away_seconds -80"] > 0
        )
        assert metrics["catchment_up"] == 1
        assert metrics["catchment_shard_away_seconds 80-"] == 0
        night.awaited(
            "lag of its own",
            lambda: samples(file),
            lambda m: m["catchment_shard_lag_seconds -80"] > 2 * m["catchment_shard_lag_seconds 80-"] + 1,
        )
        metrics = samples(file)
        assert metrics["catchment_lag_seconds"] > metrics["catchment_shard_lag_seconds 80-"] + 1
        assert (status_of(feed).lag_seconds or 0.0) > 1
        assert asked(port, "/healthz") == (200, "ok\n")
        assert asked(port, "/readyz") == (503, "1 shard is away (-80)\n")
        proxy.refusing = False
        night.awaited("no trouble", night.status, lambda s: not s.troubles)
        night.awaited("a whole lake", lambda: asked(port, "/readyz"), lambda said: said == (200, "ok\n"))
        assert night.error is None
    assert any(any(trouble.shard == "-80" for trouble in shown) for shown in night.shown)
    assert night.shown[-1] == ()
    told = [record.message for record in caplog.records if record.message.startswith("shard -80")]
    assert told[0].startswith("shard -80 is away since")
    assert told[-1].startswith("shard -80 answers again after")
    assert len(told) <= 2 * proxy.accepted
    ended = status_of(feed)
    assert ended.run is not None
    assert (ended.run.exit_code, ended.run.error) == (130, None)
    assert {(error.kind, error.shard) for error in ended.errors} >= {("ConnectionLost", "-80")}
    assert samples(file)["catchment_exit_code "] == 130


@pytest.mark.promise("status, metrics and notices all report the error that ended a run")
def test_a_feed_that_ends_by_an_error_says_so_everywhere(
    feed: Feed, servers: Servers, tmp_path: Path
) -> None:
    (table,) = feed.tables
    schema = table.partition(".")[0]
    file = tmp_path / "metrics"
    with Night(feed) as night:
        night.begun()
        servers["80-"].sql(f"TRUNCATE TABLE {schema}.t")
        night.wait()
        assert isinstance(night.error, SourceError)
    ended = status_of(feed)
    assert ended.runner == ""
    assert ended.run is not None
    assert ended.run.exit_code == 3
    assert ended.run.error is not None
    assert "it was truncated" in ended.run.error.message
    assert (ended.run.error.kind, ended.run.error.shard) == ("SchemaChangeFails", "80-")
    metrics = samples(file)
    assert (metrics["catchment_up"], metrics["catchment_exit_code SchemaChangeFails"]) == (0, 3)
    start, end = map(json.loads, (tmp_path / "told").read_text().splitlines())
    assert (start["event"], end["event"], end["exit_code"]) == ("start", "end", 3)
    assert end["error"] == {"kind": "SchemaChangeFails", "message": ended.run.error.message, "shard": "80-"}


def test_a_feed_that_cannot_begin_leaves_metrics_that_say_so(
    feed: Feed, proxy: Proxy, tmp_path: Path
) -> None:
    proxy.refusing = True
    with Night(feed) as night:
        night.wait()
    metrics = samples(tmp_path / "metrics")
    assert (metrics["catchment_up"], metrics["catchment_exit_code ConnectionLost"]) == (0, 3)
    run = status_of(feed).run
    assert run is not None
    assert run.error is not None
    assert (run.exit_code, run.error.shard) == (3, "-80")


@pytest.mark.promise("a table that is not carried is reported at once")
def test_a_table_created_while_a_glob_takes_it_is_told_at_once(
    feed: Feed, servers: Servers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (rule,) = feed.tables
    schema = rule.partition(".")[0]
    first, second = (partial(server.sql, f"USE {schema}") for server in servers.values())

    def names(status: Status) -> list[tuple[str, tuple[str, ...]]]:
        return [(one.table, one.shards) for one in status.tables_not_carried]

    with caplog.at_level(logging.WARNING), Night(feed) as night:
        night.begun()
        assert names(night.status()) == []
        began = night.status().epoch
        first(
            "CREATE TABLE coupons (id INT PRIMARY KEY)",
            "CREATE TABLE old (id INT)",
            "RENAME TABLE old TO new",
        )
        second(
            "CREATE TABLE coupons LIKE t",
            "CREATE TEMPORARY TABLE gone (id INT)",
            f"CREATE DATABASE {schema}_x",
        )
        second(f"CREATE TABLE {schema}_x.t (id INT PRIMARY KEY)", f"DROP DATABASE {schema}_x")
        both = [(f"{schema}.coupons", ("-80", "80-")), (f"{schema}.new", ("-80",))]
        found = night.awaited("both tables", night.status, lambda status: names(status) == both)
        assert all(one.epoch > began for one in found.tables_not_carried)
        night.awaited(
            "the metric",
            lambda: samples(tmp_path / "metrics"),
            lambda m: m["catchment_tables_not_carried"] == 2,
        )
    lines = [record.message for record in caplog.records if " new on shard " in record.message]
    # Each is told of once; the one that was renamed may have had an epoch of its own.
    for name in (f"{schema}.coupons", f"{schema}.new"):
        assert sum(bool(re.search(rf"{re.escape(name)}[ ,)]", line)) for line in lines) == 1, lines
    notices = map(json.loads, (tmp_path / "told").read_text().splitlines())
    assert [one["message"] for one in notices if one["event"] == "new_table"] == lines
    first("DROP TABLE new")
    stopped = status_of(feed).epoch
    with Night(feed) as night:
        count = partial(samples, tmp_path / "metrics")
        night.awaited("the start", count, lambda found: found.get("catchment_tables_not_carried") == 1)
        assert names(night.status()) == both[:1]
        first("DROP TABLE coupons")
        left = [(f"{schema}.coupons", ("80-",))]
        gone = night.awaited("one gone", night.status, lambda status: names(status) == left)
        assert found.tables_not_carried[0].epoch <= gone.tables_not_carried[0].epoch <= stopped
        second("DROP TABLE coupons")
        night.awaited("none", night.status, lambda status: names(status) == [])
