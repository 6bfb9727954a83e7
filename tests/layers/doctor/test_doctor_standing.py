"""The doctor of a feed that has begun: what would keep the next run from going on."""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from catchment.demo.server import PrivateServer
from catchment.doctor import Finding, Severity, examine
from catchment.doctor.standing import check_clock, check_logs, check_standing
from catchment.model.epoch_number import gci_of
from catchment.model.errors import Unsupported
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.source import log
from tests.promises.exact.steps import Steps, run_here
from tests.world import records
from tests.world.purged import purge
from tests.world.servers.chosen import chosen_server

MADE = (
    "CREATE TABLE t (id INT PRIMARY KEY)",
    "CREATE TABLE u (id INT PRIMARY KEY)",
    "CREATE TABLE k (id INT NOT NULL, v INT, UNIQUE KEY k (id))",
    "INSERT INTO t VALUES (1), (2)",
)


@pytest.fixture(scope="module")
def pair() -> Iterator[dict[str, PrivateServer]]:
    with (
        PrivateServer(server_id=321) as first,
        PrivateServer(server_id=322, password=first.password) as second,
    ):
        yield {"a": first, "b": second}


@pytest.fixture
def steps(
    pair: dict[str, PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed on two shards that has caught up."""
    run_here(monkeypatch)
    begun = Steps(tmp_path, pair, fresh_schema(*pair.values()))
    for shard in pair:
        begun.sql(shard, *MADE)
    begun.run()
    return begun


def errors(findings: Sequence[Finding]) -> list[str]:
    return [finding.found for finding in findings if finding.severity is Severity.ERROR]


def files_of(directory: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for root, _, names in os.walk(directory):
        for name in names:
            state = (Path(root) / name).stat()
            found[f"{root}/{name}"] = (state.st_size, state.st_mtime_ns)
    return found


def test_a_feed_that_can_go_on(steps: Steps, pair: dict[str, PrivateServer], tmp_path: Path) -> None:
    steps.sql("a", "INSERT INTO t VALUES (3)", "ALTER TABLE t ADD COLUMN n INT")
    before = files_of(tmp_path), [server.log_end() for server in pair.values()]
    findings = examine(steps.feed).findings
    assert errors(findings) == []
    newest = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert newest is not None
    first, second = findings[:2]
    assert (first.severity, first.shard, second.shard) == (Severity.OK, "a", "b")
    assert first.found.startswith("the feed stands at epoch ")
    assert f"at {newest.manifest.cut.positions['a'].at} of the log, 0.0 MiB before its end" in first.found
    assert (files_of(tmp_path), [server.log_end() for server in pair.values()]) == before


def stops(steps: Steps) -> list[str]:
    """What the doctor says of DDL that is not followed."""
    return [
        finding.found
        for finding in examine(steps.feed).findings
        if finding.severity in (Severity.ERROR, Severity.WARNING) and " at binlog." in finding.found
    ]


def test_every_statement_that_is_not_followed_is_told(steps: Steps) -> None:
    s = steps.schema
    steps.sql("a", "ALTER TABLE t ADD COLUMN a INT NOT NULL DEFAULT (7 + 0)", "INSERT INTO t VALUES (9, 9)")
    steps.sql(
        "a", "ALTER TABLE u ADD COLUMN n INT", "TRUNCATE u", "ALTER TABLE u ORDER BY id", "DROP INDEX k ON k"
    )
    steps.sql("b", "RENAME TABLE t TO old, u TO t")
    assert not [line for line in errors(examine(steps.feed).findings) if " at binlog." in line]
    told = stops(steps)
    assert [line.split(" at ")[0] for line in told] == [
        f"shard a, {s}.t",
        f"shard a, {s}.u",
        f"shard a, {s}.k",
        f"shard b, {s}.t",
        f"shard b, {s}.u",
    ]
    reasons = (
        "a column with a non-NULL default was added",
        "that Catchment does not follow",
        "an index was",
        "renamed",
        "renamed",
    )
    for line, part in zip(told, reasons, strict=True):
        assert part in line
    assert all(f"--leave {s}.{name}`" in told[at] for at, name in ((0, "t"), (1, "u"), (3, "t"), (4, "u")))
    steps.set(schema_change="fail")
    told = errors(examine(steps.feed).findings)
    assert any("schema_change is fail" in line for line in told)
    with pytest.raises(Unsupported) as ended:
        steps.run()
    assert str(ended.value) in told, "the doctor says what the run says"
    steps.set(schema_change="evolve", tables=[f"{s}.*", f"!{s}.t"])
    assert any(f"--leave {s}.t" in line for line in errors(examine(steps.feed).findings))
    assert [line.split(" at ")[0] for line in stops(steps)] == [
        f"shard a, {s}.u",
        f"shard a, {s}.k",
        f"shard b, {s}.u",
    ]


def test_tables_that_are_not_carried_are_told(steps: Steps) -> None:
    steps.sql(
        "a",
        "CREATE TABLE later (id INT)",
        "CREATE TABLE last (id INT PRIMARY KEY)",
        "CREATE TABLE _t_del LIKE t",
    )
    s = steps.schema
    late = f"2 tables match `tables` and are not carried yet: {s}.last, {s}.later; "
    for policy, then in (
        ("carry", "each joins the feed once every shard has it"),
        ("skip", "`new_tables: skip` leaves them out"),
    ):
        steps.set(new_tables=policy)
        findings = examine(steps.feed).findings
        assert errors(findings) == []
        told = [f.found for f in findings if f.severity is Severity.WARNING and s in f.found]
        assert told == [
            late + then,
            f"left out, since schema changes make such tables for a while (`shadow_tables`): {s}._t_del",
        ], told


def test_a_long_log_is_left_off(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "TURN_BYTES", 1)
    # More than one reading of a socket gives.
    steps.sql("a", "CREATE TABLE filler (id INT PRIMARY KEY, v LONGTEXT)")
    steps.sql("a", *(f"INSERT INTO filler VALUES ({n}, REPEAT('x', 700000))" for n in range(4)))
    steps.sql("a", "ALTER TABLE t ORDER BY id")
    manifest, _ = check_standing(steps.feed)
    assert manifest is not None
    left_off, _ = check_logs(steps.feed, manifest, steps.feed.endpoints(), seconds=0)
    assert left_off.severity is Severity.WARNING
    assert re.search(r"and its end is far: only [01]\.\d MiB, up to ", left_off.found)
    assert left_off.remedy == "let the feed catch up, then ask again"
    whole = check_logs(steps.feed, manifest, steps.feed.endpoints())
    assert [finding.severity for finding in whole] == [Severity.OK, Severity.WARNING, Severity.OK]


def test_a_log_that_was_purged(steps: Steps, pair: dict[str, PrivateServer]) -> None:
    steps.sql("a", "INSERT INTO t VALUES (3)", "FLUSH BINARY LOGS")
    purge(pair["a"])
    (told,) = errors(examine(steps.feed).findings)
    assert told.startswith("shard a: log file ")
    assert "it was purged" in told
    steps.run()
    newest = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert newest is not None
    assert {one.reason for one in newest.manifest.stale} == {told}
    assert errors(examine(steps.feed).findings) == []


def test_another_server(steps: Steps, pair: dict[str, PrivateServer]) -> None:
    with chosen_server(server_id=323, password=pair["a"].password) as other:
        other.sql(f"CREATE DATABASE {steps.schema}", f"USE {steps.schema}", *MADE)
        described = steps.feed.model_dump(mode="json")["source"]
        shards = [{**shard, "password": pair["a"].password, "tls": None} for shard in described["shards"]]
        shards[0]["port"] = other.port
        steps.set(source={**described, "shards": shards})
        (told,) = errors(examine(steps.feed).findings)
    assert "is now server_id 323 at " in told
    assert "the feed was reading server_id 321" in told


def test_shards_and_a_lake_that_are_not_those_of_the_feed(steps: Steps) -> None:
    described = steps.feed.model_dump(mode="json")["source"]
    password = steps.servers["a"].password
    shards = [{**shard, "password": password, "tls": None} for shard in described["shards"]]
    steps.set(source={**described, "shards": [{**shards[0], "name": "x"}, shards[1]]})
    assert any(
        "names the shards b, x, the lake holds a, b" in line for line in errors(examine(steps.feed).findings)
    )
    steps.set(source={**described, "shards": shards}, sink={"path": "elsewhere"})
    assert any("but the lake holds no epoch" in line for line in errors(examine(steps.feed).findings))


def test_a_purge_that_is_near(steps: Steps) -> None:
    """Only where there is log to read: the file that is written to is never purged."""
    days = 86_400.0
    steps.sql("a", "INSERT INTO t VALUES (7)")
    standing, _ = check_standing(steps.feed)
    assert standing is not None

    def near(later: float) -> list[str]:
        now = time.time() + later
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("catchment.doctor.standing.kept_seconds", lambda session: 4 * days)
            patch.setattr("time.time", lambda: now)
            return errors(check_logs(steps.feed, standing, steps.feed.endpoints()))

    assert near(2 * days) == []
    (said,) = near(3.5 * days)
    assert re.search(
        r"keeps its log for 345,600 s, and what the feed needs of it may be purged in 43,\d{3} s", said
    )
    (said,) = near(5 * days)
    assert "may be purged at any moment" in said


def test_an_epoch_whose_number_is_ahead_of_the_clock() -> None:
    standing = records.manifest(7)
    at = gci_of(standing.epoch) * 1_000_000
    assert check_clock(standing, at) == check_clock(standing, at - 1_500_000) == []
    (found,) = check_clock(standing, at - 3_600_000_000)
    assert found.severity is Severity.WARNING
    assert "3,600 s ahead of this machine's clock" in found.found
