"""Damage planted in the lake is found completely, and mended by epochs of the feed, beside one that runs or without."""

import threading
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

import catchment
from catchment.feed.repair import Repairer
from catchment.feed.runner import usual_ports
from catchment.model.errors import VerifyDifference
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from catchment.state.faults import Fault
from tests.promises.exact.steps import Died, Steps
from tests.promises.exact.test_orders import running
from tests.promises.verify.damage import (
    KEYS,
    all_orders,
    counts,
    damage,
    found,
    give,
    goes_on,
    must_be_equal,
    must_be_found,
    newest,
    plain,
    repair,
    waiting,
)
from tests.world.engines import Here
from tests.world.planted import with_copy, with_values, without
from tests.world.settled import settled


@pytest.mark.promise("verify finds every kind of damage in the lake, and --repair repairs it")
def test_without_a_run(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    for table in KEYS:
        damage(steps, table)
    must_be_found(steps)
    before = newest(steps)
    assert repair(steps) == 0
    said = capsys.readouterr().out
    for table in KEYS:
        assert f"{steps.schema}.{table} on a: mended, 4 missing at the lake, 3 only at the lake, " in said
        assert f"{steps.schema}.{table} on b: mended, 3 missing at the lake, 5 only at the lake, " in said
    assert "compared again: equal" in said
    # No log was read: each epoch ends where the one before does.
    assert newest(steps).cut.positions == before.cut.positions
    assert newest(steps).epoch > before.epoch
    goes_on(steps)
    assert repair(steps) == 0
    assert "mended" not in capsys.readouterr().out


def test_beside_a_run(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    for table in KEYS:
        damage(steps, table)
    with running(steps):
        assert repair(steps) == 0
    assert "compared again: equal" in capsys.readouterr().out
    goes_on(steps)


def test_orders_to_mend_wait_for_a_run_and_an_epoch_brings_no_key_twice(steps: Steps) -> None:
    """Whoever gave them may be gone. A run that is to catch up does not end before. Two who verify at a time order the
    same, and readers take the rows of one file of changes as they stand."""
    settled(steps.feed)
    plain(steps, "numbers", without("id", 3))
    plain(steps, "numbers", with_values("id", 5, "v", "wrong"))
    differing = found(steps).differing
    give(steps, [*differing, *differing])
    steps.run()
    must_be_equal(steps)
    said = [kept.answer.said for kept in all_orders(steps) if kept.answer is not None and kept.answer.done]
    assert sum(one.startswith("mended as of epoch") for one in said) == len(differing)
    assert sum(one.startswith("it is equal as of epoch") for one in said) == len(differing)


def test_a_run_that_dies_while_it_mends(steps: Steps) -> None:
    for table in KEYS:
        damage(steps, table)
    give(steps, found(steps).differing)
    steps.everywhere(
        "UPDATE numbers SET v = 'meanwhile' WHERE id IN (5, 31, 50)", "DELETE FROM texts WHERE id = 7"
    )
    steps.die_again_and_again(Fault.AFTER_MANIFEST, 4)
    steps.run()
    must_be_equal(steps)
    goes_on(steps)


def test_who_mends_without_a_run_dies(steps: Steps) -> None:
    """At one place after the other, each time with what the one before has left."""
    damage(steps, "numbers")
    for fault in (Fault.DURING_READ, Fault.AFTER_MANIFEST, Fault.AFTER_APPLY):

        def die(at: Fault, fault: Fault = fault) -> None:
            if at is fault:
                raise Died

        verdict = found(steps)
        assert verdict.differences, fault
        with pytest.raises(Died):
            Repairer(steps.feed, Here(), usual_ports(), threading.Event(), fault=die).mend(verdict)
    assert repair(steps) == 0
    must_be_equal(steps)
    steps.run()
    goes_on(steps)


def test_what_cannot_be_mended_is_said(steps: Steps) -> None:
    """A part of a table that only the server can order, since all other rows of the lake would be taken for ones that
    the source lacks; a table that is stale; and one that the feed does not carry."""
    damage(steps, "numbers")
    damage(steps, "texts")
    differing = found(steps).differing
    texts = next(chunks for chunks in differing if len(chunks) > 2)
    (first, *_), (*_, last) = texts, texts
    give(steps, [(first,), (last,), (first, last), texts[1:], texts[:-1]])
    steps.run()
    said = [kept.answer for kept in all_orders(steps)]
    assert [answer.done for answer in said if answer is not None] == [False] * 5
    assert all("only the server can order" in answer.said for answer in said if answer is not None)
    numbers = [chunks for chunks in differing if chunks[0].table.name == "numbers"]
    catchment.dump(steps.file, "restart", f"{steps.schema}.numbers")
    give(steps, [*numbers, (replace(numbers[0][0], table=TableId("shop", "nothing")),)])
    steps.run()
    refused = [kept.answer.said for kept in all_orders(steps) if kept.answer and not kept.answer.done]
    stale = "it is stale: only a table that is copied and follows"
    assert any(one.startswith(stale) for one in refused), refused
    assert any(one.startswith("it is waiting") for one in refused), refused
    steps.renew("INSERT INTO texts VALUES ('proof', 2, 'x') ON DUPLICATE KEY UPDATE id = id + 1")
    assert repair(steps) == 0
    must_be_equal(steps)


def test_rows_of_shards_that_do_not_have_the_table(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    """No shard is asked for them."""
    plain(steps, "numbers", with_copy("id", 7, "_shard", "c"))
    plain(steps, "numbers", with_copy("id", 7, "_shard", "c"))
    waiting(steps, "texts", with_copy("id", 33, "_shard", "c"))
    verdict = found(steps)
    named = verdict.found[TableId(steps.schema, "numbers")].named
    assert "only at the lake: _shard='c', k=7" in named
    assert len(verdict.strays) == 2
    assert repair(steps) == 0
    said = capsys.readouterr().out
    mended = "on no shard of the feed: mended, 0 missing at the lake"
    assert f"{steps.schema}.numbers {mended}, {verdict.differences - 1} only at the lake" in said
    assert f"{steps.schema}.texts {mended}, 1 only at the lake" in said
    must_be_equal(steps)
    settled(steps.feed)
    must_be_equal(steps)
    plain(steps, "numbers", with_copy("id", 7, "_shard", None))
    assert repair(steps) == VerifyDifference.exit_code
    assert "rows differ again after they were written" in capsys.readouterr().out, "it is of no shard at all"


MODES = {"kept": "soft_delete", "logged": "append", "aged": "history", "masked": "mirror"}


@pytest.fixture
def modes(steps: Steps) -> Steps:
    """The same shards under a feed whose tables keep more than the rows of now, or less of a row, with a key of two
    columns."""
    found = steps
    found.set(
        name="modes",
        sink={"path": str(steps.file.parent / "modes"), "changes": True},
        state=f"sqlite:///{steps.file.parent}/modes.db",
        tables=[f"{steps.schema}.{table}" for table in MODES],
        modes=[{"match": f"*.{table}", "mode": mode} for table, mode in MODES.items()],
        columns=[{"match": "*.masked.v", "mask": "hmac"}, {"match": "*.masked.w", "rename": "shown"}],
        mask_key="a key of thirty and some characters",
    )
    for table in MODES:
        found.everywhere(
            f"CREATE TABLE {table} (d DATE, id INT, v VARCHAR(20), w INT, PRIMARY KEY (d, id))",
            f"INSERT INTO {table} SELECT '2026-01-01' + INTERVAL seq % 5 DAY, seq, CONCAT('v', seq), 7"
            " FROM seq_1_to_20",
        )
    found.run()
    settled(found.feed)
    for table in MODES:
        found.everywhere(
            f"UPDATE {table} SET v = 'new' WHERE id IN (5, 6)", f"DELETE FROM {table} WHERE id = 9"
        )
    found.run()
    return found


def test_in_every_mode(modes: Steps) -> None:
    for table in MODES:
        plain(modes, table, with_copy("id", 1, "_shard", "b"))
        plain(modes, table, without("id", 3))
        plain(modes, table, with_values("id", 4, "v", "wrong"))
        plain(modes, table, with_copy("id", 7, "id", 77))
        waiting(modes, table, with_values("id", 5, "v", "wrong"))
        waiting(modes, table, without("id", 9))  # the delete is lost, so the row is back
    verdict = found(modes)
    for table in MODES:
        assert counts(verdict, table)[0] == 2
        assert counts(verdict, table)[2] == 4
    damaged = newest(modes).epoch
    assert repair(modes) == 0
    verdict = found(modes)
    assert verdict.differences == 0, verdict.found
    settled(modes.feed)
    verdict = found(modes)
    assert verdict.differences == 0, verdict.found
    after = {table: as_it_lies(modes, table) for table in MODES}
    # What was wrong is told as any change: as of an epoch behind.
    assert {row["id"] for row in after["kept"] if row["_deleted"]} == {9, 77}
    told = [row for row in after["logged"] if row["_epoch"] > damaged]
    assert {row["id"] for row in told} == {3, 4, 5, 9, 77}
    assert {row["id"] for row in told if row["_deleted"]} == {9, 77}
    ended = [row for row in after["aged"] if row["v"] == "wrong" and row["id"] == 4]
    assert len(ended) == 2
    assert all(row["_epoch_to"] > damaged for row in ended)
    assert all("wrong" not in str(row["v"]) for row in after["masked"])
    modes.everywhere("UPDATE kept SET v = 'later' WHERE id < 10", "UPDATE aged SET v = 'later' WHERE id < 10")
    modes.run()
    assert found(modes).differences == 0


def as_it_lies(steps: Steps, table: str) -> list[dict[str, Any]]:
    """The rows of a plain table."""
    directory = table_dir(steps.feed.sink.path, TableId(steps.schema, table))
    rows: list[dict[str, Any]] = pl.read_delta(str(directory)).to_dicts()
    return rows
