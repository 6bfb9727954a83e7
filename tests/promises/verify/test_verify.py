"""Verifying live data: equal while writes go on, differences named, and a broken stream never a verdict."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake

from catchment.api.read import read
from catchment.config import Feed, load
from catchment.demo import workload
from catchment.demo.server import PrivateServer
from catchment.engine.port import Engine
from catchment.feed import verify as verify_module
from catchment.feed.runner import run_feed
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify
from catchment.model.choice import Choice
from catchment.model.epoch import Part
from catchment.model.errors import ConfigError, ConnectionLost, SourceError
from catchment.model.table import TableId
from catchment.sink.delta.files import write_file
from catchment.sink.delta.layout import arrow_schema, identity_columns, tail_dir
from catchment.sink.delta.log.actions import commit_info
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.tail.apply import add_action
from tests.conftest import Shards
from tests.promises.exact.steps import run_here
from tests.world.engines import Here
from tests.world.proxy import Proxy, execute_begins

ROWS = 900


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    run_here(monkeypatch)


def feed_on(directory: Path, servers: dict[str, PrivateServer], schema: str, ports: dict[str, int]) -> Feed:
    """A feed of all tables of a schema; `ports` are the servers' own or those of proxies."""
    shards = [
        {"name": name, "host": "127.0.0.1", "port": ports[name], "user": "catchment", "password": s.password}
        for name, s in servers.items()
    ]
    text = {
        "name": "verified",
        "source": {"keyspace": "shop", "shards": shards},
        "tables": [f"{schema}.*"],
        "epoch": {"interval": "300ms"},
        "copy": {"chunk_rows_max": 800, "group_time": "0s"},
        "sink": {"path": "lake"},
    }
    path = directory / "feed.yaml"
    path.write_text(yaml.safe_dump(text))
    return load(path)


def copied(feed: Feed) -> None:
    """Run the feed until it has caught up."""
    run_feed(feed, until_caught_up=True, stop=threading.Event())


def verdict_of(feed: Feed, engine: Engine) -> Verdict:
    """What a verification finds."""
    return verify(feed, {endpoint.shard: endpoint for endpoint in feed.endpoints()}, engine)


@pytest.mark.promise("verify compares as of the newest epoch while writes go on, and names what differs")
def test_equal_under_writes_and_differences_named(
    tmp_path: Path, shards: Shards, fresh_schema: Callable[..., str]
) -> None:
    servers = {"a": shards[0], "b": shards[1]}
    schema = fresh_schema(*shards)
    for index, server in enumerate(shards):
        workload.create_tables(server, schema)
        workload.load(server, schema, ROWS, index=index, count=2)
    feed = feed_on(tmp_path, servers, schema, {name: server.port for name, server in servers.items()})
    copied(feed)

    # The runner is away and writers go on: both sides are compared as of the newest epoch all the same.
    with workload.steady_writers(shards, schema, ROWS, per_shard=1, rate=40.0):
        verdict = verdict_of(feed, Here())
    assert verdict.differences == 0, verdict.found
    assert {str(table): rows for table, rows in verdict.rows.items()} == {
        f"{schema}.{name}": 2 * ROWS for name in workload.KEYS
    }

    # Three kinds of damage at the lake, each beside the epochs table's back.
    orders = TableId(schema, "orders")
    rows = read(feed, orders).arrow()
    victims = rows.filter(pa.compute.equal(rows["_shard"], "a")).sort_by("id").slice(10, 2)
    changed, removed = victims.slice(0, 1), victims.slice(1, 1)
    extra = changed.set_column(changed.schema.get_field_index("id"), "id", pa.array([10**12], pa.int64()))
    wrong = changed.set_column(changed.schema.get_field_index("note"), "note", pa.array(["wrong"]))
    damage(feed, orders, upserts=pa.concat_tables([extra, wrong]), deletes=removed)
    verdict = verdict_of(feed, Here())
    found = verdict.found[orders]
    assert (found.missing, found.extra, found.changed) == (1, 1, 1)
    assert set(found.named) == {
        f"missing at the lake: id={removed['id'][0].as_py()}",
        f"only at the lake: id={10**12}",
        f"differs: id={changed['id'][0].as_py()}",
    }
    assert verdict.differences == 3

    with pytest.raises(ConfigError, match=r"no table shop\.nothing"):
        verify(feed, {e.shard: e for e in feed.endpoints()}, Here(), Choice((TableId("shop", "nothing"),)))


def damage(feed: Feed, table: TableId, upserts: pa.Table, deletes: pa.Table) -> None:
    """Change rows of a lake table as of its newest epoch, and make the epochs table point there."""
    state = read(feed, table)
    shape, schema = state.shape, arrow_schema(state.shape)
    parts = []
    for rows, deleted in ((upserts, False), (deletes, True)):
        with_flag = rows.append_column("_deleted", pa.array([deleted] * rows.num_rows))
        parts.append(with_flag.select(schema.names).cast(schema))
    marked = pa.concat_tables(parts)
    marked = marked.set_column(1, "_epoch", pa.array([state.epoch + 1] * marked.num_rows, pa.int64()))
    directory = tail_dir(feed.sink.path, table)
    file = write_file(directory, Part.CHANGES, "damage", [marked], schema, identity_columns(shape)[1:])
    log = DeltaLog(directory)
    after = log.put(log.newest(), commit_info("WRITE", 1), [add_action(file)])
    assert after is not None
    _repoint(feed, table, after.version)


def _repoint(feed: Feed, table: TableId, version: int) -> None:
    """Write the newest epoch's row anew with another version of one table, whether it had one of it or not."""
    directory = Path(str(feed.sink.path)) / "_catchment" / "epochs"
    epochs = DeltaTable(str(directory))
    rows = epochs.to_pyarrow_table()
    newest = max(rows["epoch"].to_pylist())
    versions = [
        json.dumps({**json.loads(text), str(table): version}) if epoch == newest else text
        for text, epoch in zip(rows["versions"].to_pylist(), rows["epoch"].to_pylist(), strict=True)
    ]
    assert versions != rows["versions"].to_pylist()
    at = rows.schema.get_field_index("versions")
    changed = rows.set_column(at, rows.schema.field(at), pa.array(versions))
    write_deltalake(str(directory), changed, mode="overwrite")


def test_a_stream_that_ends_early_is_an_error(
    tmp_path: Path, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    workload.create_tables(shard, schema)
    workload.load(shard, schema, ROWS)
    with Proxy(shard.host, shard.port) as proxy:
        feed = feed_on(tmp_path, {"a": shard}, schema, {"a": proxy.port})
        copied(feed)
        # Every SELECT of rows breaks off in the middle, again and again.
        proxy.cut_after(20_000, after=execute_begins(), times=1000)
        with pytest.raises(ConnectionLost, match="shard a"):
            verdict_of(feed, Here())


def test_a_table_that_stays_locked_is_named(
    tmp_path: Path,
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = fresh_schema(shard)
    shard.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", f"INSERT INTO {schema}.t VALUES (1), (2)")
    feed = feed_on(tmp_path, {"a": shard}, schema, {"a": shard.port})
    copied(feed)
    monkeypatch.setattr(verify_module, "FRUITLESS_WAVES_MAX", 0)
    locking = shard.connect()
    try:
        with locking.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {schema}.t WRITE")
        with pytest.raises(
            SourceError, match=rf"shard a, {schema}\.t: .*[Ll]ock wait timeout .*\(does a session"
        ):
            verdict_of(feed, Here())
    finally:
        locking.close()
    verdict = verdict_of(feed, Here())
    assert (verdict.differences, verdict.rows[TableId(schema, "t")]) == (0, 2)
