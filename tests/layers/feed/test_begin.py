"""What ends a run before it begins: nothing is stored then, and the same feed begins once it is put right."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.config import Feed
from catchment.demo.server import PrivateServer
from catchment.doctor import Severity, examine
from catchment.feed.runner import run_feed
from catchment.model.errors import ConfigError, ConnectionLost
from catchment.model.source import Endpoint
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.source.session import connect
from catchment.state.store import Store
from tests.layers.doctor.test_doctor import feed_of


def must_not_begin(feed: Feed, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        run_feed(feed, until_caught_up=True, stop=threading.Event())
    assert EpochsTable(feed.sink.path, feed.name).newest() is None
    assert Store.open(feed.state.get_secret_value(), feed.name).newest() == (None, None, None)


def with_table(server: PrivateServer, fresh_schema: Callable[..., str]) -> str:
    schema = fresh_schema(server)
    server.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", f"INSERT INTO {schema}.t VALUES (1)")
    return schema


def test_a_rule_that_takes_no_table(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    schema = with_table(shard, fresh_schema)
    feed = feed_of(tmp_path, shard, tables=(f"{schema}.*", f"{schema}.ordres", f"!{schema}.tmp"))
    must_not_begin(feed, rf"^rule {schema}\.ordres takes no table on any shard: .*; correct `tables`$")
    feed = feed_of(tmp_path, shard, tables=(f"{schema}.*", f"/{schema}.ordre/"))
    must_not_begin(feed, "correct `tables`; a `/regex/` is compared with the whole of schema.table$")


def test_two_shards_that_are_one_server(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    schema = with_table(shard, fresh_schema)
    feed = feed_of(tmp_path, shard, tables=(f"{schema}.*",))
    (first,) = feed.source.shards
    again = first.model_copy(update={"name": "s1", "host": "localhost"})
    source = feed.source.model_copy(update={"shards": (first, again)})
    must_not_begin(
        feed.model_copy(update={"source": source}),
        "^shards s0 and s1 are one server, .* twice; correct host and port of one",
    )


@pytest.mark.mariadb("its state store is made on the same server")
def test_a_password_of_any_letters(
    shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    schema = with_table(shard, fresh_schema)
    shard.sql(
        "CREATE OR REPLACE USER euro IDENTIFIED BY 'gehe1m\u20ac'",
        "GRANT SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO euro",
        f"GRANT ALL ON {schema}.* TO euro",
    )
    feed = feed_of(tmp_path, shard, tables=(f"{schema}.*",), user="euro", password="gehe1m\u20ac")
    assert [f for f in examine(feed).findings if f.severity is Severity.ERROR] == []
    url = f"mariadb+pymysql://euro:gehe1m\u20ac@{shard.host}:{shard.port}/{schema}"
    Store.open(url, "shop").close()
    shard.sql("DROP USER euro")


@pytest.mark.parametrize("given", ["ca", "cert"])
@pytest.mark.parametrize("content", [None, "no PEM"])
def test_tls_files_that_are_none(
    given: str, content: str | None, shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path
) -> None:
    schema = with_table(shard, fresh_schema)
    file = tmp_path / "x.pem"
    if content is not None:
        file.write_text(content)
    files = {"ca": {"ca": str(file)}, "cert": {"cert": str(file), "key": str(file)}}
    feed = feed_of(tmp_path, shard, tables=(f"{schema}.*",), tls=files[given])
    must_not_begin(feed, rf"^shard s0: tls\.{given} {file} ")


def test_a_user_with_too_many_connections_is_tried_again(shard: PrivateServer) -> None:
    shard.sql("CREATE USER one IDENTIFIED BY 'pw' WITH MAX_USER_CONNECTIONS 1")
    endpoint = Endpoint("s0", shard.host, shard.port, "one", "pw")
    try:
        with connect(endpoint), pytest.raises(ConnectionLost, match="max_user_connections"):
            connect(endpoint)
    finally:
        shard.sql("DROP USER one")
