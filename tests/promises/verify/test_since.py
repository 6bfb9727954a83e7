"""What changed behind an epoch is compared and mended, and nothing else: the time of it is that of the changes."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

import catchment
from catchment.cli.main import execute
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify
from catchment.model.choice import Choice, Portion, Since
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import ConfigError, SinkError
from catchment.model.table import TableId
from catchment.sink.delta.layout import tail_dir
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_orders import running
from tests.promises.verify.damage import KEYS, counts, found, newest, plain, waiting
from tests.world.engines import Here
from tests.world.planted import with_copy, with_values, without
from tests.world.settled import settled

KEY: dict[str, Callable[[int], object]] = {
    "numbers": lambda number: number,
    "texts": lambda number: f"{'nN'[number % 2 == 0]}{number:04}",
    "decimals": lambda number: Decimal(number) * Decimal("1.25"),
    "bytes": lambda number: f"k{number:04}".encode(),
}
PROOF = ("UPDATE bytes SET v = 'proof' WHERE id = 1", "UPDATE bytes SET v = '' WHERE id = 1")
# On each shard: rows 10 to 12 changed, 20 went, 25 has another key, 70 came.
ROWS_SINCE, KEYS_SINCE = 5, 7


def changed(steps: Steps) -> int:
    """Change rows of every table; the epoch before."""
    since = newest(steps).epoch
    for table, (_, made, _) in KEYS.items():
        steps.everywhere(
            f"UPDATE {table} SET v = 'since' WHERE id BETWEEN 10 AND 12",
            f"DELETE FROM {table} WHERE id = 20",
            f"UPDATE {table} SET k = {made.replace('seq', '90')} WHERE id = 25",
            f"INSERT INTO {table} VALUES ({made.replace('seq', '70')}, 70, 'since')",
        )
    steps.run()
    return since


def compared(steps: Steps, since: int, table: str = "", shard: str = "") -> Verdict:
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    tables = (TableId(steps.schema, table),) if table else ()
    return verify(steps.feed, endpoints, Here(), Choice(tables, since=Since(since, shard)))


def must_be_equal_since(steps: Steps, since: int) -> None:
    verdict = compared(steps, since)
    assert verdict.differences == 0, verdict.found
    assert verdict.rows == {TableId(steps.schema, table): 2 * ROWS_SINCE for table in KEYS}
    assert verdict.keys == 2 * KEYS_SINCE * len(KEYS)
    assert verdict.whole == ()


@pytest.mark.promise("verify --since compares only what changed since an epoch")
def test_damage_in_what_changed_is_found_and_mended_and_nothing_else_is_looked_at(
    steps: Steps, capsys: pytest.CaptureFixture[str]
) -> None:
    must_find_what_changed(steps, capsys, settle=True)


def test_damage_in_what_waits_is_found_and_mended(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    must_find_what_changed(steps, capsys, settle=False)


def must_find_what_changed(steps: Steps, capsys: pytest.CaptureFixture[str], *, settle: bool) -> None:
    """`settle`: the plain table has the changes; else they wait in the tail."""
    since = changed(steps)
    must_be_equal_since(steps, since)
    if settle:
        settled(steps.feed)
        must_be_equal_since(steps, since)
    spoil = plain if settle else waiting
    for table in KEYS:
        plain(steps, table, without("id", 50, 51))  # they did not change since
        plain(steps, table, with_values("id", 52, "v", "wrong"))
        plain(steps, table, with_values("id", 40, "v", "wrong"))
        spoil(steps, table, without("id", 10))
        spoil(steps, table, with_values("id", 11, "v", "wrong"))
        if settle:  # what went is back, and the key that 25 had
            plain(steps, table, with_copy("id", 1, "k", KEY[table](20)))
            plain(steps, table, with_copy("id", 12, "k", KEY[table](25)))
        else:
            waiting(steps, table, with_values("k", KEY[table](25), "_deleted", False))
    verdict = compared(steps, since)
    # Of a change that is lost the row of before is left, unless that was settled.
    expected = (2, 4, 2) if settle else (0, 2, 4)
    for table in KEYS:
        assert counts(verdict, table) == expected
        assert verdict.rows[TableId(steps.schema, table)] == 2 * ROWS_SINCE
    one = compared(steps, since, "texts", "b")
    assert counts(one, "texts") == tuple(count // 2 for count in expected)
    assert one.keys == KEYS_SINCE
    assert execute(["verify", str(steps.file), "--since", epoch_text(since), "--repair"]) == 0
    said = capsys.readouterr().out
    assert "compared again: equal" in said
    assert f"compared of what changed since epoch {epoch_text(since)} alone: 56 keys" in said
    assert compared(steps, since).differences == 0
    left = found(steps)
    for table in KEYS:
        assert counts(left, table)[0] == 4, "older rows were looked at"


def test_keys_of_several_columns_and_keys_that_differ_by_case_alone(steps: Steps) -> None:
    steps.everywhere(
        "CREATE TABLE pairs (name VARCHAR(20) COLLATE utf8mb4_unicode_ci, at DATETIME(3), n BIGINT UNSIGNED, v INT, "
        "PRIMARY KEY (n, name, at))",
        "INSERT INTO pairs SELECT CONCAT('ä\\\\', IF(seq % 2, '''', '%s')), '2026-01-01 00:00:00.125', "
        "seq + 18000000000000000000, 1 FROM seq_1_to_40",
        "CREATE TABLE moments (at TIMESTAMP(6), day DATE, y YEAR, b BINARY(4), v INT, PRIMARY KEY (day, at, b, y))",
        "INSERT INTO moments SELECT '2026-03-29 01:30:00.000001' + INTERVAL seq HOUR, '2026-01-01' + INTERVAL seq DAY, "
        "2000 + seq, CHAR(seq, 0), 1 FROM seq_1_to_40",
    )
    steps.set(columns=[{"match": "*.odd.%s ?*", "rename": 'an "odd" one'}])
    steps.everywhere(
        'CREATE TABLE odd (`%s ?"``x` INT, `select` VARBINARY(9), v INT, PRIMARY KEY (`%s ?"``x`, `select`))',
        "INSERT INTO odd SELECT seq % 3, seq, 1 FROM seq_1_to_40",
        "CREATE TABLE labels (k ENUM('x', 'y') PRIMARY KEY, v INT)",
        "INSERT INTO labels VALUES ('x', 1), ('y', 2)",
    )
    for table in ("pairs", "moments", "odd", "labels"):
        steps.enter(table, *PROOF)
    steps.must_be_equal("pairs", "n", "name", "v")
    settled(steps.feed)
    since = newest(steps).epoch
    steps.everywhere(
        "UPDATE pairs SET name = UPPER(name) WHERE v = 1 ORDER BY n LIMIT 5",
        "UPDATE moments SET v = 2 ORDER BY day LIMIT 7",
        "UPDATE odd SET v = 2 WHERE `select` < '2'",
        "UPDATE texts SET k = LOWER(k) WHERE id = 26",
    )
    steps.run()
    verdict = compared(steps, since)
    assert verdict.differences == 0
    rows = {"pairs": 10, "moments": 14, "texts": 2, "odd": 22, "labels": 4}
    assert {table.name: count for table, count in verdict.rows.items()} == rows
    assert verdict.keys == 2 * (2 * 5 + 7 + 2 + 11)
    assert verdict.whole == (f"{steps.schema}.labels on a", f"{steps.schema}.labels on b")
    settled(steps.feed)
    plain(steps, "texts", with_copy("id", 26, "k", "N0026"))
    plain(steps, "moments", with_values("v", 2, "v", 3))
    plain(steps, "pairs", with_values("v", 1, "v", 3))
    plain(steps, "odd", without("v", 2))
    verdict = compared(steps, since)
    assert [counts(verdict, table) for table in ("texts", "moments", "pairs", "odd")] == [
        (0, 2, 0),
        (0, 0, 14),
        (0, 0, 10),
        (22, 0, 0),
    ]


def test_tables_that_keep_more(steps: Steps) -> None:
    modes = ("soft_delete", "append", "history")
    steps.set(modes=[{"match": f"*.{mode}", "mode": mode} for mode in modes])
    for mode in modes:
        steps.everywhere(
            f"CREATE TABLE {mode} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {mode} SELECT seq, 1 FROM seq_1_to_40",
        )
    for mode in modes:
        steps.enter(mode, *PROOF)
    settled(steps.feed)
    since = newest(steps).epoch
    for mode in modes:
        steps.everywhere(f"UPDATE {mode} SET v = 2 WHERE id < 10", f"DELETE FROM {mode} WHERE id IN (3, 30)")
    steps.run()
    for _ in range(2):
        for mode in modes:
            verdict = compared(steps, since, mode)
            assert (verdict.differences, verdict.keys, verdict.whole) == (0, 20, ()), mode
        settled(steps.feed)
    for mode in modes:
        plain(steps, mode, without("id", 4, 20))
        assert counts(compared(steps, since, mode), mode) == (2, 0, 0), mode
    assert execute(["verify", str(steps.file), "--since", epoch_text(since), "--repair"]) == 0
    for mode in modes:
        assert compared(steps, since, mode).differences == 0, mode


def test_writes_meanwhile(steps: Steps) -> None:
    """Chunks are brought to the epoch as of which the lake is compared; keys change, go and come meanwhile."""
    since = changed(steps)
    steps.everywhere(
        "UPDATE numbers SET k = k + 1000 WHERE id IN (10, 70)",
        "DELETE FROM texts WHERE id = 11",
        "INSERT INTO texts VALUES ('N0020', 20, 'again')",
        "UPDATE decimals SET v = 'later' WHERE id < 30",
        "UPDATE bytes SET k = 'k0012x' WHERE id = 12",
    )
    must_be_equal_since(steps, since)
    with running(steps):
        for number in range(5):
            steps.everywhere(
                f"UPDATE numbers SET v = 'x{number}' WHERE id BETWEEN 5 AND 40",
                f"DELETE FROM bytes WHERE id = {40 + number}",
                f"UPDATE texts SET k = CONCAT('z', k) WHERE id = {30 + number}",
            )
            assert compared(steps, since).differences == 0
    steps.run()
    verdict = compared(steps, since)
    assert verdict.differences == 0
    assert verdict.rows[TableId(steps.schema, "numbers")] == 2 * 36  # 5 to 40 without 20, and 70


def test_where_changes_do_not_name_the_rows_a_table_is_compared_whole(steps: Steps) -> None:
    """A TRUNCATE, a column that comes with a value, a table that enters, and one that is copied again."""
    since = newest(steps).epoch
    steps.sql("a", "TRUNCATE numbers")
    steps.everywhere("ALTER TABLE texts ADD COLUMN w INT NOT NULL DEFAULT 7")
    steps.everywhere("CREATE TABLE late (k INT PRIMARY KEY)", "INSERT INTO late SELECT seq FROM seq_1_to_5")
    catchment.dump(steps.file, "restart", f"{steps.schema}.decimals")
    steps.enter("late", *PROOF)
    steps.renew(*PROOF)
    verdict = compared(steps, since)
    where = {"numbers": "a", "texts": "ab", "late": "ab", "decimals": "ab"}
    assert set(verdict.whole) == {
        f"{steps.schema}.{table} on {one}" for table, on in where.items() for one in on
    }
    assert verdict.differences == 0
    names = {table.name: rows for table, rows in verdict.rows.items()}
    assert names["texts"] == names["decimals"] == 122
    assert names["late"] == 10
    assert names["bytes"] == 2
    settled(steps.feed)
    plain(steps, "decimals", without("id", 50))
    plain(steps, "late", with_copy("k", 1, "k", 77))
    verdict = compared(steps, since)
    assert counts(verdict, "decimals") == (2, 0, 0)
    assert counts(verdict, "late") == (0, 2, 0)


def test_times_and_what_cannot_be_asked(steps: Steps, capsys: pytest.CaptureFixture[str]) -> None:
    between = datetime.now(UTC)
    since = changed(steps)
    report = catchment.verify(steps.feed, since=between)
    assert (report.since_epoch, report.changed_keys) == (since, 56)
    numbers = TableId(steps.schema, "numbers")
    report = catchment.verify(steps.feed, since=epoch_text(since), portion=Portion(numbers, "b"))
    assert (report.changed_keys, [table.rows for table in report.tables]) == (KEYS_SINCE, [ROWS_SINCE])
    capsys.readouterr()
    asked = ["verify", str(steps.file), "--since", epoch_text(since)]
    assert execute([*asked, "--shard", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed_keys"] == 28
    for more, why in (
        (["--since", "soon"], "since: 'soon' is not understood"),
        (["--since", "2999-01-01"], "lies in the future; the newest epoch of"),
        (["--since", "2001-01-01"], "has no epoch at or before 2001-01-01"),
        (
            ["--since", epoch_text(since), "--sample", "5"],
            "all that changed is compared; leave the sample out",
        ),
        (["--since", epoch_text(since), "--keys", "1..2"], "leave out --keys and --where"),
        (["--since", epoch_text(since), "--shard", "c"], "shard c: the feed has no such shard"),
    ):
        assert execute(["verify", str(steps.file), *more]) == ConfigError.exit_code, more
        assert why in capsys.readouterr().err
    with pytest.raises(ConfigError, match="leave out which keys"):
        catchment.verify(steps.feed, since=since, portion=Portion(numbers, first="1"))


def test_an_epoch_of_which_the_lake_has_not_all_changes_is_refused_with_the_oldest(steps: Steps) -> None:
    since = changed(steps)
    settled(steps.feed)
    then = newest(steps).epoch
    steps.everywhere("UPDATE numbers SET v = 'later' WHERE id = 1")
    steps.run()
    numbers = TableId(steps.schema, "numbers")
    for file in Path(str(tail_dir(steps.feed.sink.path, numbers))).glob("_part=changes/*.parquet"):
        if since < int(file.name.partition("-")[0]) <= then:
            file.unlink()  # as the cleaner does when sink.keep is over
    told = rf"since epoch {epoch_text(since)} is not known any more: .*; epochs from .* can be read"
    with pytest.raises(SinkError, match=told):
        compared(steps, since)
    assert compared(steps, then).rows == {numbers: 2}
    nothing = compared(steps, newest(steps).epoch)
    assert (nothing.rows, nothing.keys) == ({}, 0)
    assert compared(steps, since, "texts").keys == 2 * KEYS_SINCE


def test_rows_that_say_that_they_are_newer_are_compared_too(steps: Steps) -> None:
    since = changed(steps)
    plain(steps, "numbers", with_copy("id", 1, "k", 77_777))
    assert compared(steps, since).differences == 0
    plain(steps, "numbers", with_values("k", 77_777, "_epoch", newest(steps).epoch))
    plain(steps, "bytes", with_values("id", 2, "_epoch", newest(steps).epoch))
    plain(steps, "bytes", with_values("id", 2, "_shard", "elsewhere"))
    verdict = compared(steps, since)
    assert counts(verdict, "numbers") == (0, 2, 0)
    assert counts(verdict, "bytes") == (0, 2, 0)
    assert verdict.strays == [TableId(steps.schema, "bytes")]


def test_a_table_that_becomes_stale_meanwhile_is_not_compared_further(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read as of an earlier epoch from then on, which nothing of now can be compared with."""
    since = changed(steps)
    engine, numbers = Here(), TableId(steps.schema, "numbers")
    each = engine.each

    def stop_following(work: Callable[[object], object], tasks: Sequence[object]) -> list[object]:
        found = each(work, tasks)
        if len(engine.done) == 1:
            steps.everywhere("DELETE FROM numbers", "ALTER TABLE numbers ORDER BY id")
            steps.run()
            assert newest(steps).stale_since(numbers) is not None
        return found

    monkeypatch.setattr(engine, "each", stop_following)
    steps.set(copy={"chunk_rows_max": 2, "group_time": "0s", "groups_per_shard": 1}, schema_change="freeze")
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    verdict = verify(steps.feed, endpoints, engine, Choice((numbers,), since=Since(since)))
    assert verdict.differences == 0
    assert [one.table for one in verdict.stale] == [numbers]
    assert 0 < verdict.rows[numbers] < 2 * ROWS_SINCE
