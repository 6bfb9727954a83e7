"""Damage planted in the lake is found completely, and mended by epochs of the feed, beside one that runs or without."""

import re
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace

import catchment
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed.repair import Repairer
from catchment.feed.runner import usual_ports
from catchment.feed.verify import Verdict, verify
from catchment.model.chunk import Chunk
from catchment.model.epoch import Manifest, Part
from catchment.model.errors import ConfigError, VerifyDifference
from catchment.model.order import Action, Kept, Order
from catchment.model.sample import Sample
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from catchment.state import orders
from catchment.state.faults import Fault
from catchment.state.store import Store
from tests.promises.exact.steps import Died, Steps, run_here
from tests.promises.exact.test_orders import running
from tests.world.engines import Here
from tests.world.planted import Rewrite, plant, with_copy, with_values, without
from tests.world.settled import settled

ROWS = 60
# Of each table the type of its key, how it is made of a number, and one that no row has.
KEYS = {
    "numbers": ("INT", "seq", 99_999),
    "texts": (
        "VARCHAR(20) COLLATE utf8mb4_unicode_ci",
        "CONCAT(IF(seq % 2, 'n', 'N'), LPAD(seq, 4, '0'))",
        "x",
    ),
    "decimals": ("DECIMAL(12, 2)", "seq * 1.25", Decimal("0.33")),
    "bytes": ("VARBINARY(20)", "CONCAT('k', LPAD(seq, 4, '0'))", b"l"),
}
ONLY_ON_A = (1000, 1001)


@pytest.fixture
def steps(
    shards: list[PrivateServer],
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Steps:
    """A feed of two shards that has copied its tables, settled them, and followed some changes."""
    run_here(monkeypatch)
    found = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards[:2]))
    found.set(copy={"chunk_rows_max": 7})
    for table, (kind, made, _) in KEYS.items():
        found.everywhere(
            f"CREATE TABLE {table} (k {kind} PRIMARY KEY, id INT, v VARCHAR(20))",
            f"INSERT INTO {table} SELECT {made}, seq, 'old' FROM seq_1_to_{ROWS}",
        )
        first, last = ONLY_ON_A
        found.sql("a", f"INSERT INTO {table} SELECT {made}, seq, 'old' FROM seq_{first}_to_{last}")
    found.run()
    settled(found.feed)
    for table in KEYS:
        found.everywhere(f"UPDATE {table} SET v = 'new' WHERE id BETWEEN 30 AND 40")
    found.run()
    return found


def newest(steps: Steps) -> Manifest:
    row = EpochsTable(steps.feed.sink.path, steps.feed.name).newest()
    assert row is not None
    return row.manifest


def plain(steps: Steps, table: str, rewrite: Rewrite) -> None:
    """Damage the plain table."""
    of = TableId(steps.schema, table)
    assert plant(Path(str(table_dir(steps.feed.sink.path, of))), newest(steps).shape(of), rewrite)


def waiting(steps: Steps, table: str, rewrite: Rewrite) -> None:
    """Damage the changes that the plain table does not have yet."""
    of = TableId(steps.schema, table)
    directory = Path(str(tail_dir(steps.feed.sink.path, of)))
    assert plant(directory, newest(steps).shape(of), rewrite, Part.CHANGES)


def found(steps: Steps) -> Verdict:
    return verify(steps.feed, {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}, Here())


def counts(verdict: Verdict, table: str) -> tuple[int, int, int]:
    differences = next(one for of, one in verdict.found.items() if of.name == table)
    return differences.missing, differences.extra, differences.changed


def damage(steps: Steps, table: str) -> None:
    """All kinds of damage, in base and in changes. `FOUND` says what verify makes of it."""
    nobodys = KEYS[table][2]
    first, second = ONLY_ON_A
    plain(steps, table, without("id", 3, 60))  # missing on both shards
    plain(steps, table, with_values("id", 5, "v", "wrong"))  # changed on both
    plain(
        steps, table, with_copy("id", 7, "v", "twice")
    )  # there twice on both: one is extra, and may be the right one
    plain(steps, table, with_copy("id", 8, "v", "old"))  # there twice on both, and equal: one is extra
    plain(steps, table, with_copy("id", 11, "k", nobodys))  # extra on both
    plain(steps, table, with_values("id", first, "_shard", "b"))  # missing on a, extra on b
    plain(steps, table, with_copy("id", second, "_shard", "b"))  # extra on b
    waiting(steps, table, without("id", 30))  # changed on both: the change is lost
    waiting(steps, table, with_values("id", 31, "v", "wrong"))  # changed on both
    waiting(steps, table, with_values("id", 32, "_deleted", True))  # missing on both
    waiting(steps, table, with_copy("id", 33, "k", nobodys))  # the same extra key once more


MISSING = 2 * 2 + 1 + 2
EXTRA = 2 + 2 + 2 + 1 + 1
CHANGED = {
    4 * 2 - 2,
    4 * 2 - 1,
    4 * 2,
}  # of a row that is there twice one is right, and either may be compared


def must_be_found(steps: Steps) -> None:
    verdict = found(steps)
    for table in KEYS:
        missing, extra, changed = counts(verdict, table)
        assert (missing, extra) == (MISSING, EXTRA)
        assert changed in CHANGED


def repair(steps: Steps) -> int:
    return execute(["verify", str(steps.file), "--repair"])


def must_be_equal(steps: Steps) -> None:
    """By verify, and by what a reader gets."""
    verdict = found(steps)
    assert verdict.differences == 0, verdict.found
    for table in KEYS:
        assert steps.lake(table, "k", "id", "v") == steps.source(table, "k", "id", "v")


def goes_on(steps: Steps) -> None:
    """The feed goes on, and its plain tables take up what was mended."""
    must_be_equal(steps)
    settled(steps.feed)
    must_be_equal(steps)
    for table in KEYS:
        steps.everywhere(
            f"UPDATE {table} SET v = 'later' WHERE id < 13", f"DELETE FROM {table} WHERE id = 32"
        )
    steps.run()
    must_be_equal(steps)


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


def test_an_order_to_mend_waits_for_a_run(steps: Steps) -> None:
    """Whoever gave it may be gone. A run that is to catch up does not end before."""
    damage(steps, "numbers")
    give(steps, found(steps).differing)
    steps.run()
    must_be_equal(steps)


def test_an_epoch_brings_no_key_twice(steps: Steps) -> None:
    """Two who verify at a time order the same. Readers take the rows of one file of changes as they stand."""
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


@pytest.mark.parametrize(
    "fault",
    [
        Fault.DURING_READ,
        Fault.AFTER_MANIFEST,
        Fault.BETWEEN_APPLIES,
        Fault.AFTER_APPLY,
        Fault.AFTER_EPOCH_ROW,
    ],
)
def test_a_run_that_dies_while_it_mends(steps: Steps, fault: Fault) -> None:
    for table in KEYS:
        damage(steps, table)
    give(steps, found(steps).differing)
    steps.everywhere(
        "UPDATE numbers SET v = 'meanwhile' WHERE id IN (5, 31, 50)", "DELETE FROM texts WHERE id = 7"
    )
    steps.die_again_and_again(fault, 12)
    steps.run()
    must_be_equal(steps)
    goes_on(steps)


@pytest.mark.parametrize("fault", [Fault.DURING_READ, Fault.AFTER_MANIFEST, Fault.AFTER_APPLY])
def test_who_mends_without_a_run_dies(steps: Steps, fault: Fault) -> None:
    damage(steps, "numbers")
    verdict = found(steps)

    def die(at: Fault) -> None:
        if at is fault:
            raise Died

    with pytest.raises(Died):
        Repairer(steps.feed, Here(), usual_ports(), threading.Event(), fault=die).mend(verdict)
    assert repair(steps) == 0
    must_be_equal(steps)
    steps.run()
    goes_on(steps)


def test_what_cannot_be_mended_is_said(steps: Steps) -> None:
    damage(steps, "numbers")
    differing = found(steps).differing
    catchment.dump(steps.file, "restart", f"{steps.schema}.numbers")
    give(steps, [*differing, (replace(differing[0][0], table=TableId("shop", "nothing")),)])
    steps.run()
    said = [kept.answer.said for kept in all_orders(steps) if kept.answer and not kept.answer.done]
    assert any(one.startswith("it is stale: only a table that is copied and follows") for one in said), said
    assert any(one.startswith("it is waiting") for one in said), said
    steps.renew("INSERT INTO texts VALUES ('proof', 2, 'x') ON DUPLICATE KEY UPDATE id = id + 1")
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


def test_a_row_of_no_shard_at_all_is_not_mended_and_said(
    steps: Steps, capsys: pytest.CaptureFixture[str]
) -> None:
    plain(steps, "numbers", with_copy("id", 7, "_shard", None))
    assert repair(steps) == VerifyDifference.exit_code
    assert "rows differ again after they were written" in capsys.readouterr().out


@pytest.mark.parametrize("percent", [10.0, 50.0])
def test_a_sample_is_as_large_as_asked_and_the_same_again(steps: Steps, percent: float) -> None:
    plain(steps, "numbers", without("id", *range(1, ROWS)))
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}

    def sampled(seed: int) -> Verdict:
        return verify(steps.feed, endpoints, Here(), sample=Sample(percent, seed))

    verdicts = [sampled(seed) for seed in range(12)]
    compared, parts = (sum(one.parts[side] for one in verdicts) for side in (0, 1))
    assert parts > 12 * 4 * 2
    assert 0.6 * percent < 100 * compared / parts < 1.5 * percent
    assert len({one.differences for one in verdicts}) > 3
    whole = found(steps)
    assert whole.parts[0] == whole.parts[1]
    assert 0 < sum(one.differences for one in verdicts) < 12 * whole.differences
    again = sampled(5)
    assert (again.found, again.rows, again.parts) == (
        verdicts[5].found,
        verdicts[5].rows,
        verdicts[5].parts,
    )


def test_a_sample_on_the_command_line(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    plain(steps, "numbers", without("id", *range(1, ROWS)))
    assert execute(["verify", str(steps.file), "--sample", "60", "--seed", "7", "--repair"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"compared \d+ of \d+ parts, a sample of 60 % \(--seed 7\)", said)
    assert "compared again: equal" in said
    assert execute(["verify", str(steps.file), "--sample", "60", "--seed", "7"]) == 0
    assert execute(["verify", str(steps.file), "--seed", "7"]) == ConfigError.exit_code
    assert execute(["verify", str(steps.file), "--sample", "0"]) == ConfigError.exit_code


def give(steps: Steps, differing: Sequence[tuple[Chunk, ...]]) -> None:
    with opened(steps) as store:
        for chunks in differing:
            of = chunks[0].of
            orders.give(store, Order(Action.MEND, "ada", 1, of.table, of.shard, chunks=chunks))


def all_orders(steps: Steps) -> list[Kept]:
    with opened(steps) as store, store.database.snapshot() as connection:
        return orders.listed(connection, store)


def opened(steps: Steps) -> closing[Store]:
    return closing(Store.open(steps.feed.state.get_secret_value(), steps.feed.name))


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
