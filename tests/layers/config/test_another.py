"""Another feed file for a run: what it would go by, what it cannot change, and what it is not told."""

from pathlib import Path

import pytest

from catchment.config import Feed, load
from catchment.config.another import another, told
from catchment.model.errors import ConfigError

FILE = """
name: life
source: {keyspace: ks, shards: [{name: "-80", host: h, user: u, password: hidden-1, replicas: []}]}
tables: [a.b, "!a.c", /x.*/]
columns: [{match: a.b.c, mask: hmac}, {match: a.b.d, mask: partial, show: 2}]
modes: [{match: a.b, mode: history}]
arrange: [{match: a.b, cluster_by: [c], partition_by: month(day), target_file_size: 64MB}]
schema_change: freeze
ddl: [{match: a.b, schema_change: evolve}]
mask_key: hidden-2-0123456789
copy:
  chunk_time: 200ms
  first: [a.b]
  throttle: {replica_lag: 2s, http: "http://x/hidden-3", flag_file: x.flag, bytes_per_second: 2MB,
             query: {select: "SELECT 1", at_most: 3}}
sink: {path: lake, settle: 5s, keep: 90min, keep_daily: forever, index: off, changes: true}
verify: {every: 1d, budget: 5%, sample: 12.5%, repair: true}
epoch: {interval: 2s, wait_max: 1h}
metrics: {file: m.txt}
notify: {url: "http://u/hidden-4"}
state: mysql://me:hidden-5@host/db
"""


def feed(directory: Path, text: str = FILE) -> Feed:
    file = directory / "feed.yaml"
    file.write_text(text)
    return load(file)


def test_the_same_file_changes_nothing_and_makes_the_same_feed(tmp_path: Path) -> None:
    mine = feed(tmp_path)
    found = another(mine, told(mine))
    assert (found.changed, found.kept_back) == ((), ())
    assert found.feed == mine


def test_no_secret_is_told(tmp_path: Path) -> None:
    assert "hidden" not in told(feed(tmp_path))
    assert "hidden" in FILE


def test_what_changes_and_what_cannot(tmp_path: Path) -> None:
    mine = feed(tmp_path)
    changes = {
        "2s, http": "4s, http", "[a.b, ": "[a.e, a.b, ", "host: h": "host: other", "lake,": "pond,", "5s": "0s",
        "freeze": "fail", "evolve": "freeze", "x.flag": "y.flag", "90min": "2h", "m.txt": "n.txt",
        "wait_max: 1h": "away_max: 1min",
    }  # fmt: skip
    text = FILE
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after, 1)
    theirs = feed(tmp_path, text)
    found = another(mine, told(theirs))
    assert found.changed == (
        "copy.throttle.replica_lag", "ddl", "epoch.away_max", "epoch.wait_max", "schema_change", "sink.keep",
        "sink.settle", "source.shards[-80].host", "tables",
    )  # fmt: skip
    assert found.kept_back == ("copy.throttle.flag_file", "metrics.file", "sink.path")
    assert found.feed.tables == theirs.tables
    assert found.feed.epoch == theirs.epoch
    assert found.feed.schema_change is theirs.schema_change
    assert found.feed.ddl == theirs.ddl
    assert found.feed.sink.path == mine.sink.path
    assert found.feed.copying.throttle.http == mine.copying.throttle.http
    assert found.feed.copying.throttle.flag_file == mine.copying.throttle.flag_file
    assert found.feed.mask_key == mine.mask_key
    assert found.feed.state == mine.state


def shards(*described: str) -> str:
    return FILE.replace(
        '{name: "-80", host: h, user: u, password: hidden-1, replicas: []}', ", ".join(described)
    )


def test_a_shard_may_be_reached_otherwise(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("hidden-6")
    (tmp_path / "new").write_text("hidden-7")
    mine = feed(
        tmp_path,
        shards(
            '{name: "-80", host: h, user: u, password: hidden-1, replicas: []}',
            '{name: "80-", host: i, port: 3307, user: u, password: {file: old}, replicas: []}',
        ),
    )
    theirs = feed(
        tmp_path,
        shards(
            '{name: "80-", host: i, user: v, password: {file: new}, tls: {verify: no}, replicas: []}',
            '{name: "-80", host: j, user: u, password: hidden-8, replicas: [{host: k}]}',
        ),
    )
    order = told(theirs)
    assert "hidden" not in order
    found = another(mine, order)
    assert found.kept_back == ()
    assert found.changed == (
        "source.shards[-80].host", "source.shards[-80].replicas", "source.shards[80-].password.file",
        "source.shards[80-].port", "source.shards[80-].tls.verify", "source.shards[80-].user",
    )  # fmt: skip
    first, second = found.feed.endpoints()
    assert (first.shard, first.host, first.password) == ("-80", "j", "hidden-1"), "a text is told to nobody"
    assert (second.port, second.user, second.now.password) == (3306, "v", "hidden-7")
    assert second.tls is not None
    assert not second.tls.verify
    (tmp_path / "new").write_text("hidden-9")
    assert second.now.password == "hidden-9"


def test_an_order_of_a_command_that_reads_no_password_names_its_file(tmp_path: Path) -> None:
    mine = feed(tmp_path)
    (tmp_path / "feed.yaml").write_text(FILE.replace("hidden-1", "{file: later}"))
    order = told(load(tmp_path / "feed.yaml", secrets=("state",)))
    with pytest.raises(ConfigError, match=r"cannot read .*later: No such file"):
        another(mine, order)
    (tmp_path / "later").write_text("hidden-6")
    found = another(mine, order)
    assert found.changed == ("source.shards[-80].password.file",)
    assert found.feed.endpoints()[0].now.password == "hidden-6"


def test_a_password_that_is_no_longer_in_a_file_is_taken_by_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("hidden-6")
    mine = feed(tmp_path, FILE.replace("hidden-1", "{file: old}"))
    found = another(mine, told(feed(tmp_path)))
    assert (found.changed, found.kept_back) == ((), ("source.shards[-80].password.file",))
    assert found.feed.endpoints()[0].now.password == "hidden-6"


def test_which_shards_there_are_stays(tmp_path: Path) -> None:
    mine = feed(tmp_path)
    theirs = feed(
        tmp_path,
        shards(
            '{name: "-80", host: other, user: u, password: p, replicas: []}',
            '{name: "80-", host: i, user: u, replicas: []}',
        ),
    )
    found = another(mine, told(theirs))
    assert (found.changed, found.kept_back) == ((), ("source.shards",))
    assert found.feed.source == mine.source


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tables": ["a.b"], "sink": 7}', '{"tables": ["a.b"]}'])
def test_what_is_no_feed_file_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"the order holds no|expected"):
        another(feed(tmp_path), text)
