"""A second sink: a folder of its own and a line of the registry are all that it takes."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from catchment.api.read import read
from catchment.cli.settle import settle
from catchment.demo.server import PrivateServer
from catchment.doctor.standing import check_standing
from catchment.feed.verify import verify
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.sink.registry.sinks import SINKS, SinkKind
from tests.layers.sink.nothing.sink import Asked, NothingSink
from tests.promises.exact.steps import Steps, run_here

Calls = list[tuple[str, int]]
ROWS = 2500


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the sink is asked by all runs of a test."""
    asked = Asked()
    monkeypatch.setitem(SINKS, "nothing", SinkKind(lambda feed, after_table: NothingSink(asked), None))
    return asked


@pytest.fixture
def steps(asked: Asked, shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path) -> Steps:
    """A feed that names the sink, with a table of rows to copy."""
    steps = Steps(tmp_path, {"a": shard}, fresh_schema(shard))
    steps.set(sink={"kind": "nothing", "path": str(tmp_path / "lake")})
    steps.sql("a", "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    steps.sql("a", f"INSERT INTO t SELECT seq, seq FROM seq_1_to_{ROWS}")
    return steps


def epochs_of(calls: Calls) -> list[tuple[int, list[str]]]:
    """What was asked for each epoch, by epoch in the order of their first call."""
    found: dict[int, list[str]] = {}
    for call, epoch in calls:
        if epoch:
            found.setdefault(epoch, []).append(call)
    return list(found.items())


@pytest.mark.mariadb("the rows are made by its sequence engine")
def test_a_feed_copies_and_follows(steps: Steps, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = run_here(monkeypatch)

    steps.run()
    calls = asked.taken()
    names = [call for call, _ in calls]
    begin = ["fence", "newest", "take_over", "newest", "must_be_free", "apply", "record", "upkeep"]
    assert (names[:8], names[-1]) == (begin, "stop")
    turns = epochs_of(calls[8:])
    # What brings nothing is read and not applied. An epoch's apply is over before that of the next one.
    applied = [(epoch, asked_for) for epoch, asked_for in turns if len(asked_for) > 1]
    assert {tuple(asked_for) for _, asked_for in applied} == {("complete", "apply", "record", "count")}
    behind = [call for call in calls[8:] if call[0] in ("apply", "count")]
    assert behind == [(call, epoch) for epoch, _ in applied for call in ("apply", "count")]
    assert all(one < other for (one, _), (other, _) in pairwise(applied))

    newest = asked.newest
    assert newest is not None
    copied = newest.manifest
    assert [(p.table.name, p.done, p.rows) for p in copied.cut.copies] == [("t", True, ROWS)]

    steps.sql("a", "UPDATE t SET v = v + 1 WHERE id <= 10", "DELETE FROM t WHERE id = 11")
    steps.run()
    calls = asked.taken()
    begin = ["fence", "newest", "must_hold", "take_over", "newest", "restore", "upkeep"]
    assert [call for call, _ in calls[:7]] == begin
    followed = [e for e in epochs_of(calls[7:]) if len(e[1]) > 1]
    assert [asked_for for _, asked_for in followed] == [["complete", "apply", "record", "count"]]
    newest = asked.newest
    assert newest is not None
    assert newest.manifest.changes == 11
    # Caught up: the cut is the end of the log.
    at = newest.manifest.cut.positions["a"].at
    assert (at.file, at.offset) == steps.servers["a"].log_end()
    assert engine.done
    assert not (steps.file.parent / "lake").exists()


@pytest.mark.mariadb("the rows are made by its sequence engine")
def test_whoever_asks_a_lake_asks_this_sink(
    steps: Steps, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = run_here(monkeypatch)
    steps.run()
    asked.taken()

    standing, findings = check_standing(steps.feed)
    assert asked.newest is not None
    assert (standing is not None, findings) == (True, [])
    assert asked.taken() == [("newest", 0), ("must_hold", asked.newest.commit.epoch)]

    verdict = verify(steps.feed, {e.shard: e for e in steps.feed.endpoints()}, engine)
    found = verdict.found[TableId(steps.schema, "t")]
    assert (found.missing, found.extra, found.changed) == (ROWS, 0, 0)
    assert {call for call, _ in asked.taken()} == {"newest", "reader"}

    done = CliRunner().invoke(settle, [str(steps.file)], catch_exceptions=False)
    assert done.output == "0 tables settled, 0 files deleted\n"
    assert asked.taken() == [("newest", 0), ("settle", 0)]

    with pytest.raises(ConfigError, match="catchment does not read what a sink nothing holds"):
        read(steps.file, f"{steps.schema}.t")
    steps.set(sink={"kind": "nobody", "path": str(steps.file.parent / "lake")})
    with pytest.raises(
        ConfigError, match="there is no sink nobody; give one of delta, nothing, or leave it out"
    ):
        steps.run()
