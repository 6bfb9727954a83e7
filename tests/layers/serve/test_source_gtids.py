"""A stream that begins behind the GTIDs that a backup names: every change since then, once, and none before."""

import json
from collections.abc import Callable
from contextlib import closing

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import ConfigError, Diverged, Unsupported
from tests.layers.serve.conftest import NAMES, Drive, MakeFeed
from tests.layers.serve.direct import in_order
from tests.world.servers.launch import PrivateMySQL

FreshSchema = Callable[..., str]
KV = "CREATE TABLE kv (k INT PRIMARY KEY, v VARCHAR(20))"
SERVERS = [
    "shard",
    *(pytest.param(name, marks=pytest.mark.wide) for name in ("mysql_server", "mysql_97_server")),
]


def _gtids(server: PrivateServer) -> str:
    variable = "gtid_executed" if isinstance(server, PrivateMySQL) else "gtid_binlog_pos"
    return str(server.sql(f"SELECT @@{variable}")[0][0]).replace("\n", "")


def _xa(server: PrivateServer, schema: str, *statements: str) -> None:
    with closing(server.connect(database=schema)) as session, session.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize("fixture", SERVERS)
def test_changes_behind_a_backup(
    fixture: str,
    request: pytest.FixtureRequest,
    fresh_schema: FreshSchema,
    make_feed: MakeFeed,
    drive: Drive,
) -> None:
    server: PrivateServer = request.getfixturevalue(fixture)
    schema = fresh_schema(server)
    server.sql(KV, "INSERT INTO kv VALUES (1, 'in the backup')", database=schema)
    _xa(
        server,
        schema,
        "XA START 'x'",
        "INSERT INTO kv VALUES (2, 'prepared')",
        "XA END 'x'",
        "XA PREPARE 'x'",
    )
    backup = _gtids(server)
    server.sql(
        "INSERT INTO kv VALUES (3, 'new')",
        "FLUSH BINARY LOGS",
        "XA COMMIT 'x'",
        "UPDATE kv SET v = 'changed' WHERE k = 1",
        "DELETE FROM kv WHERE k = 3",
        database=schema,
    )
    feed = make_feed(server)
    driver = drive(feed, f"{schema}.kv", startingGtids=backup)
    assert driver.offset == {"version": 2, "start": {NAMES[0]: backup}}
    driver.finish()
    expected = [
        ("insert", 3, "new"),
        ("insert", 2, "prepared"),
        ("update_preimage", 1, "in the backup"),
        ("update_postimage", 1, "changed"),
        ("delete", 3, "new"),
    ]
    assert [(row["_change_type"], row["k"], row["v"]) for row in in_order(driver.rows)] == expected
    again = drive(feed, f"{schema}.kv", driver.offsets[1])
    server.sql("INSERT INTO kv VALUES (4, 'later')", database=schema)
    again.finish()
    found = [(row["_change_type"], row["k"], row["v"]) for row in in_order(again.rows)]
    assert found == [*expected, ("insert", 4, "later")]


def test_every_shard_has_its_own(
    shards: tuple[PrivateServer, PrivateServer],
    fresh_schema: FreshSchema,
    make_feed: MakeFeed,
    drive: Drive,
) -> None:
    """A table of one shard only; both must be named; GTIDs that the server does not have are refused."""
    schema = fresh_schema(*shards)
    shards[0].sql(KV, database=schema)
    known = {name: _gtids(server) for name, server in zip(NAMES, shards, strict=True)}
    shards[0].sql("INSERT INTO kv VALUES (1, 'a')", database=schema)
    feed, table = make_feed(*shards), f"{schema}.kv"
    driver = drive(feed, table, startingGtids=json.dumps(known))
    driver.finish()
    assert [(row["_shard"], row["k"]) for row in driver.rows] == [(NAMES[0], 1)]
    for wrong in (known[NAMES[0]], json.dumps({NAMES[0]: ""}), "{", json.dumps(dict.fromkeys(known, 1))):
        with pytest.raises(ConfigError, match="option startingGtids"):
            drive(feed, table, startingGtids=wrong)
    with pytest.raises(ConfigError, match="two places to begin"):
        drive(feed, table, startingGtids="", startingOffset="latest")
    unknown = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1" if ":" in known[NAMES[0]] else "9-9-9"
    with pytest.raises(Diverged):
        drive(feed, table, startingGtids=json.dumps({**known, NAMES[1]: unknown})).finish()


def test_rows_prepared_in_an_earlier_file_are_refused_at_their_commit(
    shard: PrivateServer, fresh_schema: FreshSchema, make_feed: MakeFeed, drive: Drive
) -> None:
    schema = fresh_schema(shard)
    shard.sql(KV, database=schema)
    _xa(
        shard, schema, "XA START 'y'", "INSERT INTO kv VALUES (2, 'prepared')", "XA END 'y'", "XA PREPARE 'y'"
    )
    shard.sql("FLUSH BINARY LOGS", "INSERT INTO kv VALUES (3, 'new')", database=schema)
    behind = _gtids(shard)
    shard.sql("XA COMMIT 'y'")
    with pytest.raises(Unsupported, match=r"XA COMMIT .*prepared before the feed began"):
        drive(make_feed(shard), f"{schema}.kv", startingGtids=behind).finish()
