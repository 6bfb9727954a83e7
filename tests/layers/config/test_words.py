"""What is said of a bad feed file: in our own words, with units, without values of Python."""

import re
from pathlib import Path

import pytest

from tests.layers.config.test_file import MINIMAL, faults_of

# A part of the minimal feed, what stands there instead, and what is said of that.
FAULTS: list[tuple[str, str, str]] = [
    ("path: lake", "path: file:///data/lake", "8: sink.path: file:// is no object store"),
    ("path: lake", "path: s3a://bucket/lake", "8: sink.path: s3a:// is no object store"),
    (
        "path: lake",
        "path: s3://user:secret@bucket/lake",
        "8: sink.path: s3://: the name of a bucket is expected",
    ),
    ("path: lake", "path: s3://bucket/a b", "8: sink.path: s3://bucket/...: a prefix is expected"),
    (
        "{path: lake}",
        "{path: lake}\nmetrics: {file: 'gs://b/m'}",
        "9: metrics.file: expected a path, not an address",
    ),
    ("hunter2", '"$SHOP_PASSWORD"', "6: source.shards[0].password: looks like a variable of the environment"),
    ("hunter2", '"${shop_password}"', "6: source.shards[0].password: looks like a variable of the"),
    ("hunter2", '"${SHOP:-hunter2}"', "6: source.shards[0].password: looks like a variable of the"),
    ("sink:", 'state: "$STATE_URL"\nsink:', "8: state: looks like a variable of the environment"),
    ("name: shop", "name: Shop", "2: name: expected up to 64 lower-case letters, digits, _ and -"),
    ("keyspace: shop", "keyspace: a/b", "4: source.keyspace: expected up to 64 letters, digits, _, . and -"),
    ('"-80"', "-80", "6: source.shards[0].name: expected a text; put numbers"),
    ('"-80"', "'-80/2'", "6: source.shards[0].name: expected up to 64 letters, digits, _, . and -"),
    ("host: db1", "host: ''", "6: source.shards[0].host: is empty"),
    ("user: copier", "user: copier, port: 70000", "source.shards[0].port: at most 65535"),
    ("user: copier", "user: copier, port: 0", "source.shards[0].port: at least 1"),
    ("user: copier", "user: copier, port: x", "source.shards[0].port: expected a whole number"),
    ("user: copier", "user: copier, port: 3.5", "source.shards[0].port: expected a whole number"),
    ("user: copier", "user: copier, port: [3]", "source.shards[0].port: expected a whole number"),
    (
        "user: copier",
        "user: copier, tls: {verify: perhaps}",
        "source.shards[0].tls.verify: expected true or false",
    ),
    (
        "user: copier",
        "user: copier, tls: {verify: []}",
        "source.shards[0].tls.verify: expected true or false",
    ),
    ("path: lake", "path: lake, keep: 2d", "8: sink.keep: at most 1d"),
    (
        "path: lake",
        "path: lake, keep_hourly: ever",
        "8: sink.keep_hourly: expected a duration such as 12h or 30d",
    ),
    (
        "path: lake",
        "path: lake, keep_hourly: 1h",
        "keep_hourly must be longer than keep (1h and 1h are given)",
    ),
    (
        "path: lake",
        "path: lake, keep_hourly: forever, keep_daily: 30d",
        "keep_daily must be longer than keep_hourly (30d and forever are given)",
    ),
    ("path: lake", "path: lake, index: yes", "8: sink.index: expected a path, or off"),
    ("path: lake", "path: lake, keep: 5s", "8: sink.keep: at least 10s"),
    ("path: lake", "path: lake, settle: 2h", "8: sink.settle: at most 1h"),
    ("sink:", "epoch: {interval: 1ms}\nsink:", "8: epoch.interval: at least 50ms"),
    ("sink:", "copy: {chunk_time: 1h}\nsink:", "8: copy.chunk_time: at most 1min"),
    ("sink:", "copy: {log_budget: 1KB}\nsink:", "8: copy.log_budget: at least 1MB"),
    ("sink:", "schema_change: perhaps\nsink:", "8: schema_change: expected evolve, freeze or fail"),
    ("sink:", "schema_change: [evolve]\nsink:", "8: schema_change: expected evolve, freeze or fail"),
    ("sink:", "spark: {conf: [a]}\nsink:", "8: spark.conf: expected a mapping"),
    ("sink:", "spark: {conf: {a: [b]}}\nsink:", "8: spark.conf.a: expected a text"),
    ("[shop.*]", "[shop.]", "7: tables: shop. is not of the form schema.table"),
    ("[shop.*]", "[[shop.a]]", "7: tables[0]: expected a text"),
    ("tables:", "\ttables:", "7: a tab stands where a word is expected; YAML indents with spaces alone"),
    ("[shop.*]", "[*.a]", "7: a text that begins with * or ! must be put in quotes"),
    ("[shop.*]", "[*]", "7: a text that begins with * or ! must be put in quotes"),
    ("[shop.*]", "[!shop.a]", "or a text that begins with ! is not in quotes"),
    ("hunter2", "@hunter2", "6: a text that begins with @, ` or % must be put in quotes"),
    ("hunter2", "%hunter2", "6: a text that begins with @, ` or % must be put in quotes"),
    ("hunter2", r'"\hunter2"', "6: a backslash in double quotes begins an escape; put the text in single"),
    ("name: shop", "name: 'shop", "a quote is opened in line 2 and not closed"),
    ("[shop.*]", "[shop.*", "a bracket is opened in line 7 and not closed, or a comma is missing"),
    ("path: lake}", "path: lake", "a bracket is opened in line 8 and not closed, or a comma is missing"),
    ("name: shop", "name: shop: x", "2: a colon and a space inside a text: put it in quotes"),
    ("  keyspace: shop", "   keyspace: shop", "5: not indented as the lines before it"),
    ("name: shop", "name: shop\nshop", "a line that is no `key: value`"),
    ("name: shop", "name: a\0b", "a character that YAML does not allow"),
    ("name: shop", "name: *x", "2: a text that begins with * or ! must be put in quotes"),
    ("name: shop", "name: &", "2: a text that begins with & must be put in quotes"),
    ("name: shop", "name: 2024-13-45", "a number or date that there is not; put it in quotes"),
    ("name: shop", "? [a]\n: b\nname: shop", "a list or mapping as a key"),
]


@pytest.mark.parametrize(("old", "new", "said"), FAULTS)
def test_our_own_words(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MINIMAL
    faults = "\n".join(faults_of(tmp_path, MINIMAL.replace(old, new, 1)))
    assert said in faults
    assert "hunter2" not in faults
    for others in ("should be", "Input", "valid ", "pydantic", "found character", "but found"):
        assert others not in faults


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty: a feed needs the keys name, source, tables and sink"),
        ("# nothing", "the file is empty: a feed needs the keys name, source, tables and sink"),
        ("- a", "expected a mapping: a feed needs the keys name, source, tables and sink"),
        ("words", "expected a mapping: a feed needs the keys name, source, tables and sink"),
    ],
)
def test_a_file_that_is_no_feed_is_told_what_a_feed_needs(tmp_path: Path, text: str, said: str) -> None:
    (fault,) = faults_of(tmp_path, text)
    assert said in fault


def test_no_message_shows_a_value_of_python(tmp_path: Path) -> None:
    of_python = re.compile(r"\[['\"]|\(['\"]|\{['\"]|set\(|None|True|False|<class|Path\(|\\x|\bu?'[^']*',")
    for old, new, _ in FAULTS:
        faults = "\n".join(faults_of(tmp_path, MINIMAL.replace(old, new, 1)))
        assert not of_python.search(faults), faults
