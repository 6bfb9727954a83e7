"""Feeds on MySQL with options that change what the log holds: parts of documents, compression, tags, NOBLOB."""

from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.doctor import Severity, examine
from catchment.feed.verify import verify
from catchment.model.gtidset import GtidSet
from tests.layers.wire.dumps import decoded, read_dump
from tests.layers.wire.events import events_of, kind_of
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.promises.mysql.test_feed import fill, writer_of
from tests.world.engines import on_spark
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

_PARTIAL_UPDATE, _PAYLOAD, _TAGGED = 39, 40, 42
_PARTS = {"binlog_row_value_options": "PARTIAL_JSON"}
_PACKED = {"binlog_transaction_compression": "ON"}
_NOBLOB = {"binlog_row_image": "NOBLOB"}


@pytest.mark.parametrize(
    ("fixture", "settings", "tag", "kinds"),
    [
        ("mysql_80_build", _PARTS | _NOBLOB, "", {_PARTIAL_UPDATE}),
        pytest.param("mysql_97_build", _PACKED, "seed", {_PAYLOAD, _TAGGED}, marks=pytest.mark.wide),
        ("mysql_97_build", _PARTS | _PACKED | _NOBLOB, "seed", {_PAYLOAD, _TAGGED}),
    ],
    ids=["8.0 parts, NOBLOB", "9.7 packed and tagged", "9.7 all"],
)
def test_a_feed_with_these_options_is_right(
    fixture: str,
    settings: dict[str, str | int],
    tag: str,
    kinds: set[int],
    request: pytest.FixtureRequest,
    spark: SparkContext,
    tmp_path: Path,
) -> None:
    build: Build = request.getfixturevalue(fixture)
    with PrivateMySQL(build, settings=settings) as server:
        server.sql("CREATE DATABASE d")
        fill(server, "d")
        feed = make_feed(tmp_path, {"a": server}, "d", chunk_rows=700)
        assert [f for f in examine(feed).findings if f.severity is Severity.ERROR] == []
        writer = writer_of(server, "d", tag)
        with FeedRun(feed) as run:
            writer.start()
            run.wait("all tables copied", lambda epochs: epochs[-1].cut.copied)
            run.wait_for_epochs(len(run.epochs) + 2)
            writer.stop()
            newest = run.wait_for_log({"a": server})
        (first,) = run.epochs[0].cut.positions.values()
        raw = read_dump(server, first.at)
        assert kinds <= {kind_of(event) for event in events_of(raw)}
        tags = {group["tag"] for group in decoded(raw, first.at).take_groups().to_pylist()}
        assert tag in tags
        ((executed,),) = server.sql("SELECT @@gtid_executed")
        assert [position.gtids for position in newest.cut.positions.values()] == [GtidSet.parse(executed)]
        verdict = verify(feed, {endpoint.shard: endpoint for endpoint in feed.endpoints()}, on_spark(spark))
        assert verdict.differences == 0, verdict.found
