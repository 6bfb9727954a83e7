"""What a feed file says of throttles and of the order of tables, and its faults."""

from pathlib import Path

import pytest

from catchment.config import load
from catchment.feed.checks import Checks
from catchment.model.table import TableId
from catchment.model.throttle import Check
from tests.layers.config.test_file import MINIMAL, faults_of, feed_of

WITH_REPLICAS = MINIMAL.replace(
    "password: hunter2", "password: hunter2, replicas: [{host: db1b}, {host: db1c, port: 7}]"
)


def test_everything_given(tmp_path: Path) -> None:
    feed = feed_of(
        tmp_path,
        WITH_REPLICAS
        + """
copy:
  throttle:
    threads_running: 30
    history_list_length: 100000
    replica_lag: 5s
    query: {select: "SELECT 1", at_most: 2.5}
    flag_file: wait
    http: {file: url}
    rows_per_second: 1000
    bytes_per_second: 4MB
""".replace("{file: url}", "http://host/health"),
    )
    throttle = feed.copying.throttle
    assert throttle.flag_file == tmp_path / "wait"
    assert (throttle.replica_lag, throttle.bytes_per_second) == (5.0, 4 << 20)
    probes = Checks(feed).of("-80", throttle)
    assert [probe.check for probe in probes] == [
        Check.FLAG_FILE,
        Check.HTTP,
        Check.THREADS_RUNNING,
        Check.HISTORY_LIST_LENGTH,
        Check.QUERY,
        Check.REPLICA_LAG,
        Check.REPLICA_LAG,
    ]
    assert [(one.host, one.port) for one in feed.shard("-80").replica_endpoints()] == [
        ("db1b", 3306),
        ("db1c", 7),
    ]


def test_nothing_given(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, MINIMAL)
    assert Checks(feed).of("-80", feed.copying.throttle) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("threads_running: 0", "copy.throttle.threads_running: at least 1"),
        ("replica_lag: 5", "copy.throttle.replica_lag: expected a duration"),
        ("query: {select: 'DELETE FROM t', at_most: 1}", "copy.throttle.query.select: expected a SELECT"),
        ("query: {select: 'SELECT 1'}", "copy.throttle.query.at_most: is missing"),
        ("query: {select: 'SELECT 1', at_most: .nan}", "copy.throttle.query.at_most: "),
        ("http: 'ftp://hunter2'", "copy.throttle.http: expected an address that begins with http"),
        ("bytes_per_second: 1B", "copy.throttle.bytes_per_second: at least 1KB"),
        ("thread_running: 5", "copy.throttle.thread_running: unknown key; did you mean threads_running?"),
        ("replica_lag: 5s", "shard -80 does not say which replicas it has; give replicas, [] for none"),
    ],
)
def test_faults(tmp_path: Path, text: str, words: str) -> None:
    (fault,) = faults_of(tmp_path, MINIMAL + f"copy: {{throttle: {{{text}}}}}\n")
    assert words in fault
    assert "hunter2" not in fault


def test_a_shard_without_replicas_says_so(tmp_path: Path) -> None:
    feed = feed_of(
        tmp_path,
        MINIMAL.replace("password: hunter2", "password: hunter2, replicas: []")
        + "copy: {throttle: {replica_lag: 5s}}\n",
    )
    assert Checks(feed).of("-80", feed.copying.throttle) == ()


def test_the_address_is_a_secret(tmp_path: Path) -> None:
    (tmp_path / "feed.yaml").write_text(MINIMAL + "copy: {throttle: {http: {env: NOT_SET_HERE}}}\n")
    feed = load(tmp_path / "feed.yaml", secrets=("state",))
    assert feed.copying.throttle.http is not None
    feed = feed_of(tmp_path, MINIMAL + "copy: {throttle: {http: 'http://h/?hunter2'}}\n")
    assert "hunter2" not in repr(feed)


def test_the_order_of_tables(tmp_path: Path) -> None:
    feed = feed_of(tmp_path, MINIMAL + "copy: {first: [shop.orders, 'shop.o*', '/shop\\.(c|d)/']}\n")
    names = ["orders", "other", "c", "d", "e"]
    assert [feed.copying.place_of(TableId("shop", name)) for name in names] == [0, 1, 2, 2, 3]
    (fault,) = faults_of(tmp_path, MINIMAL + "copy: {first: ['!shop.tmp']}\n")
    assert "copy.first: !shop.tmp is an exclusion; name what comes first" in fault
    (fault,) = faults_of(tmp_path, MINIMAL + "copy: {first: [orders.]}\n")
    assert "copy.first: orders. is not of the form" in fault
