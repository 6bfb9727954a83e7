"""Settings that change while a feed runs: which, and to what."""

from pathlib import Path

import pytest

from catchment.config.live import LIVE, setting_text, with_setting
from catchment.model.errors import ConfigError
from tests.layers.config.test_file import MINIMAL, feed_of


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("copy.chunk_time", "200ms"),
        ("copy.chunk_rows_max", "5000"),
        ("copy.group_time", "3s"),
        ("copy.groups_per_shard", "4"),
        ("copy.log_budget", "128MB"),
        ("copy.throttle.threads_running", "30"),
        ("copy.throttle.history_list_length", "100000"),
        ("copy.throttle.replica_lag", "5s"),
        ("copy.throttle.rows_per_second", "1000"),
        ("copy.throttle.bytes_per_second", "4MB"),
    ],
)
def test_a_value_is_read_as_in_the_feed_file_and_written_back(tmp_path: Path, name: str, text: str) -> None:
    feed = feed_of(tmp_path, MINIMAL.replace("password: hunter2", "password: hunter2, replicas: []"))
    assert name in LIVE
    changed = with_setting(feed, name, text)
    assert setting_text(changed, name) == text
    assert setting_text(feed, name) != text
    others = [other for other in LIVE if other != name]
    assert [setting_text(changed, other) for other in others] == [setting_text(feed, o) for o in others]
    if ".throttle." in name:
        assert setting_text(with_setting(changed, name, "off"), name) == "off"


def test_all_that_may_change_is_tried_above() -> None:
    assert len(LIVE) == 10


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("copy.chunk_time", "200", "copy.chunk_time: expected a duration"),
        ("copy.chunk_time", "2h", "copy.chunk_time: at most 1min"),
        ("copy.chunk_time", "off", "copy.chunk_time: expected a duration"),
        ("copy.chunk_rows_max", "many", "copy.chunk_rows_max: expected a whole number"),
        ("copy.throttle.threads_running", "0", "copy.throttle.threads_running: at least 1"),
        ("copy.throttle.bytes_per_second", "1B", "copy.throttle.bytes_per_second: at least 1KB"),
        ("copy.throttle.replica_lag", "5s", "shard -80 does not say which replicas it has"),
        ("copy.first", "shop.a", "copy.first cannot change while a feed runs; change the feed file"),
        ("copy.throttle.query.select", "SELECT 1", "copy.throttle.query.select cannot change while"),
        ("source.shards.host", "db2", "source.shards.host cannot change while a feed runs"),
        ("copy.chunktime", "1s", "copy.chunktime is no setting; did you mean copy.chunk_time?"),
        ("x", "1s", "x is no setting; what can change is copy.chunk_time, copy.chunk_rows_max"),
        ("", "1s", " is no setting; what can change"),
        ("copy", "1s", "copy cannot change while a feed runs"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        with_setting(feed_of(tmp_path, MINIMAL), name, text)
    assert words in str(caught.value)
