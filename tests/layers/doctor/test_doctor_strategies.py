"""Where a strategy of copying cannot be used: the doctor says so, and no run begins."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from catchment.config import CopyConfig, Feed, load
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.doctor import Severity, examine
from catchment.feed.runner import run_feed
from catchment.model.errors import ConfigError
from catchment.sink.delta.epochs.table import EpochsTable
from tests.layers.doctor.test_doctor import assert_only, feed_of
from tests.world.servers.launch import PrivateMySQL

ERROR = Severity.ERROR


@pytest.fixture
def own() -> Iterator[PrivateServer]:
    """A server on which the feed's user may write marks."""
    with PrivateServer(server_id=306, settings={"log_slave_updates": "ON"}) as server:
        server.sql(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id bigint PRIMARY KEY)",
            "CREATE DATABASE catchment",
        )
        server.sql(f"GRANT CREATE, INSERT, UPDATE, DELETE ON catchment.* TO {FEED_USER}@'%'")
        yield server


def feed_by(tmp_path: Path, server: PrivateServer, strategy: str = "watermark", **copying: str) -> Feed:
    feed = feed_of(tmp_path, server)
    said = feed.copying.model_validate({"strategy": strategy, **copying})
    return feed.model_copy(update={"copying": said})


def must_be_refused(feed: Feed, found: str, remedy: str) -> None:
    """By the doctor and by a run, which does nothing."""
    assert_only(examine(feed).findings, [(ERROR, found, remedy)])
    with pytest.raises(ConfigError) as refused:
        run_feed(feed, until_caught_up=True, stop=threading.Event())
    assert str(refused.value).startswith("shard s0: ")
    assert found in str(refused.value)
    assert remedy in str(refused.value)
    assert EpochsTable(feed.sink.path, feed.name).newest() is None


def test_a_mark_is_tried_and_taken_away(own: PrivateServer, tmp_path: Path) -> None:
    before = own.log_end()
    assert_only(examine(feed_by(tmp_path, own, "rewind")).findings, [])
    assert_only(examine(feed_by(tmp_path, own, "snapshot")).findings, [])
    assert own.log_end() == before, "only watermark writes"
    assert_only(examine(feed_by(tmp_path, own)).findings, [])
    assert own.log_end() != before
    assert own.sql("SELECT COUNT(*) FROM catchment.marks") == [(0,)]


def test_a_user_who_may_not_write_marks_is_told_the_grant(own: PrivateServer, tmp_path: Path) -> None:
    own.sql(f"REVOKE ALL ON catchment.* FROM {FEED_USER}@'%'")
    grant = f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `catchment`.* TO '{FEED_USER}'@'%'"
    must_be_refused(feed_by(tmp_path, own), "no mark can be written to catchment.marks", grant)
    own.sql(f"GRANT CREATE ON catchment.* TO {FEED_USER}@'%'")
    must_be_refused(feed_by(tmp_path, own), "no mark can be written to catchment.marks", grant)
    own.sql(grant)
    assert_only(examine(feed_by(tmp_path, own)).findings, [])


def test_a_schema_that_is_not_there_is_to_be_made(own: PrivateServer, tmp_path: Path) -> None:
    feed, remedy = (
        feed_by(tmp_path, own, marks="gone.marks"),
        "CREATE DATABASE `gone`, then GRANT SELECT, INSERT",
    )
    must_be_refused(feed, "no mark can be written to gone.marks", remedy)
    own.sql(f"GRANT CREATE ON gone.* TO {FEED_USER}@'%'")
    must_be_refused(feed, "no mark can be written to gone.marks", remedy)


def test_a_server_that_is_read_only_or_a_replica_takes_no_marks(own: PrivateServer, tmp_path: Path) -> None:
    own.sql("SET GLOBAL read_only = ON")
    must_be_refused(feed_by(tmp_path, own), "read_only is ON", "SET GLOBAL read_only=OFF")
    own.sql("SET GLOBAL read_only = OFF", "SET GLOBAL gtid_slave_pos = '7-8-9'")
    must_be_refused(
        feed_by(tmp_path, own), "is or was a replica (gtid_slave_pos 7-8-9", "name its source as host"
    )
    assert_only(examine(feed_by(tmp_path, own, "snapshot")).findings, [])


def test_a_table_of_another_engine_proves_nothing(own: PrivateServer, tmp_path: Path) -> None:
    own.sql("CREATE TABLE catchment.marks (feed VARCHAR(128) PRIMARY KEY) ENGINE=MyISAM")
    must_be_refused(feed_by(tmp_path, own), "catchment.marks is a table of MyISAM", "copy.marks")


def test_a_table_that_is_made_otherwise_takes_no_marks(own: PrivateServer, tmp_path: Path) -> None:
    own.sql("CREATE TABLE catchment.marks (id INT PRIMARY KEY)")
    must_be_refused(
        feed_by(tmp_path, own), "no mark can be written to catchment.marks: Unknown column", "copy.marks"
    )


def test_a_schema_that_is_kept_out_of_the_log_takes_no_marks(tmp_path: Path) -> None:
    with PrivateServer(server_id=307, settings={"binlog_ignore_db": "catchment"}) as server:
        server.sql(
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id bigint PRIMARY KEY)",
            "CREATE DATABASE catchment",
        )
        must_be_refused(
            feed_by(tmp_path, server), "keeps changes of catchment out of the log", "without these filters"
        )


@pytest.mark.parametrize(
    ("strategy", "why"),
    [("snapshot", "no place in the log with a snapshot"), ("watermark", "proven on MariaDB alone")],
)
def test_mysql_has_rewind_alone(mysql_server: PrivateMySQL, tmp_path: Path, strategy: str, why: str) -> None:
    feed = feed_by(tmp_path, mysql_server, strategy).model_copy(update={"tables": ("sys.sys_config",)})
    found = [one for one in examine(feed).findings if "copy.strategy" in one.found]
    assert [(one.severity, why in one.risk) for one in found] == [(ERROR, True)]
    with pytest.raises(ConfigError, match=why):
        run_feed(feed, until_caught_up=True, stop=threading.Event())


@pytest.mark.parametrize("tables", ['["shop.*", "catchment.*"]', '["*.marks"]'])
def test_a_table_of_the_feed_takes_no_marks(tmp_path: Path, tables: str) -> None:
    file = tmp_path / "feed.yaml"
    text = (
        "name: shop\nsource: {keyspace: shop, shards: [{name: s0, host: db1, user: catchment}]}\n"
        f"tables: {tables}\nsink: {{path: lake}}\ncopy: {{strategy: STRATEGY}}\n"
    )
    file.write_text(text.replace("STRATEGY", "watermark"))
    with pytest.raises(
        ConfigError, match=r'catchment.marks is among the tables of the feed; add "!catchment.marks"'
    ):
        load(file)
    file.write_text(text.replace("STRATEGY", "rewind"))
    load(file)
    file.write_text(
        text.replace("STRATEGY", "watermark").replace(tables, tables[:-1] + ', "!catchment.marks"]')
    )
    load(file)


def test_marks_are_named_with_their_schema() -> None:
    with pytest.raises(ValueError, match=r"schema\.name"):
        CopyConfig.model_validate({"marks": "marks"})
