"""A table that cannot be followed any more, taken out of its feed: the others go on, exact."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.config import Feed, SchemaChange
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError, SourceError
from catchment.model.table import TableId
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.world.judge import lake_rows, source_rows


def _with_rules(feed: Feed, *rules: str) -> Feed:
    return feed.model_copy(update={"tables": rules})


def test_a_feed_goes_on_without_a_table_that_was_dropped(
    servers: Servers,
    spark: SparkContext,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    schema = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(
            f"USE {schema}",
            "CREATE TABLE t (id INT PRIMARY KEY, c INT)",
            "CREATE TABLE u (id INT PRIMARY KEY)",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
            "INSERT INTO u VALUES (1)",
        )
    feed = make_feed(tmp_path, servers, schema, chunk_rows=10)
    with FeedRun(feed) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        whole = run.wait_for_log(servers)
    servers["80-"].sql(
        f"USE {schema}", "UPDATE t SET c = 3", "DROP TABLE u", "CREATE TABLE later (id INT PRIMARY KEY)"
    )
    with FeedRun(feed) as run:
        run.wait_for_log(servers)
    assert any(message.startswith(f"{schema}.u stands as of epoch ") for message in caplog.messages)
    none = _with_rules(feed, f"{schema}.later")
    with pytest.raises(ConfigError, match="takes none of the tables"), FeedRun(none) as run:
        run.wait_for_log(servers)
    without = _with_rules(feed, f"{schema}.*", f"!{schema}.u")
    for _ in range(2):  # also once it is out
        with caplog.at_level(logging.WARNING), FeedRun(without, leave=[TableId(schema, "u")]) as run:
            servers["80-"].sql(f"UPDATE {schema}.t SET c = c + 1")
            manifest = run.wait_for_log(servers)
    assert [message for message in caplog.messages if "has left" in message] == [
        f"{schema}.u has left the feed: its lake table stays as of epoch {epoch_text(whole.epoch)}"
    ]
    assert [message.split(";")[0] for message in caplog.messages if ".later" in message] == [
        f"1 table matches `tables` and is not carried, because the feed began without: {schema}.later"
    ] * 3
    assert [str(shape.table) for shape in manifest.shapes] == [f"{schema}.t"]
    found = read(feed, f"{schema}.t", manifest.epoch).arrow().to_pylist()
    assert lake_rows(found, ("id",)) == source_rows(servers, f"{schema}.t", ("id",))
    assert read(feed, f"{schema}.u", whole.epoch).arrow().num_rows == 2
    with pytest.raises(ConfigError, match="tables are"):
        read(feed, f"{schema}.u", manifest.epoch)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "DROP TABLE {}.u",
            r'was dropped; .*add "!{}\.u" to `tables` and start once with `--leave {}\.u`: the feed',
        ),
        (
            "ALTER TABLE {}.u CHANGE id ident INT",
            r"{}\.u at .*: columns were altered: id modified, id to ident renamed, and schema_change is fail; with "
            r"schema_change: evolve in the feed file",
        ),
    ],
    ids=["dropped", "key renamed"],
)
def test_a_table_that_goes_while_it_is_copied_is_told_with_the_way_out(
    statement: str,
    said: str,
    servers: Servers,
    spark: SparkContext,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
) -> None:
    schema = fresh_schema(*servers.values())
    for server in servers.values():
        server.sql(
            f"USE {schema}",
            "CREATE TABLE u (id INT PRIMARY KEY)",
            "INSERT INTO u SELECT seq FROM seq_1_to_3000",
            "CREATE TABLE t (id INT PRIMARY KEY, c INT)",
            "INSERT INTO t VALUES (1, 1), (2, 2)",
        )
    feed = make_feed(tmp_path, servers, schema, chunk_rows=10)
    feed = feed.model_copy(update={"schema_change": SchemaChange.FAIL})

    def go_while_it_is_copied(run: FeedRun) -> None:
        copying = run.wait("some rows", lambda epochs: any(copy.rows for copy in epochs[-1].cut.copies))
        assert not copying.cut.copied
        servers["80-"].sql(statement.format(schema))
        run.wait_for_log(servers)

    with pytest.raises(SourceError, match=said.format(schema, schema)) as first, FeedRun(feed) as run:
        go_while_it_is_copied(run)
    with pytest.raises(SourceError) as second, FeedRun(feed) as run:
        run.wait_for_log(servers)
    assert str(second.value) == str(first.value)
    without = _with_rules(feed, f"{schema}.*", f"!{schema}.u")
    with FeedRun(without, leave=[TableId(schema, "u")]) as run:
        manifest = run.wait("the rest", lambda epochs: epochs[-1].cut.copied)
    found = read(feed, f"{schema}.t", manifest.epoch).arrow().to_pylist()
    assert lake_rows(found, ("id",)) == source_rows(servers, f"{schema}.t", ("id",))
