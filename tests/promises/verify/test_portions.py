"""A portion of a table is compared and written again in its place: keys from one to another, one shard, chunks that
hold some row. The rest of the table is not looked at."""

import json
import random
from collections.abc import Callable

import pytest

import catchment
from catchment.cli.main import execute
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify
from catchment.model.choice import Choice, Portion
from catchment.model.errors import ConfigError, StateError
from catchment.model.table import TableId
from tests.promises.exact.steps import Steps
from tests.promises.exact.test_orders import running, wait
from tests.promises.verify.damage import ROWS, counts, found, in_small_chunks, newest, plain
from tests.world.engines import Here
from tests.world.planted import without
from tests.world.settled import settled

# Those between were changed since the settle: the tail has them.
DAMAGED = (*range(1, 30, 2), *range(41, ROWS, 2))
WRITTEN: dict[str, Callable[[int], str]] = {
    "numbers": str,
    "decimals": lambda number: f"{number * 1.25:.2f}",
    "bytes": lambda number: f"k{number:04}".encode().hex(),
}


def compared(steps: Steps, table: str = "numbers", **portion: str) -> Verdict:
    of = TableId(steps.schema, table)
    endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
    return verify(steps.feed, endpoints, Here(), Choice((of,), portion=Portion(of, **portion)))


def missing(steps: Steps, table: str = "numbers", **portion: str) -> int:
    """How many keys a portion lacks in the lake, over both shards."""
    verdict = compared(steps, table, **portion)
    if not verdict.rows:
        return 0
    lacking, extra, changed = counts(verdict, table)
    assert (extra, changed) == (0, 0)
    return lacking


def test_keys_from_one_to_another(steps: Steps) -> None:
    """Of each kind that can be ordered, on both shards or one."""
    in_small_chunks(steps)
    for table in WRITTEN:
        plain(steps, table, without("id", *DAMAGED))
    for first, last, keys in (
        ("11", "15", 3),
        ("12", "14", 1),
        ("11", "11", 1),
        ("57", "", 2),
        ("", "3", 2),
        ("-5", "1", 1),
        ("1000000", "", 0),
    ):
        assert missing(steps, first=first, last=last) == 2 * keys, (first, last)
        assert missing(steps, first=first, last=last, shard="a") == keys, (first, last)
    rng = random.Random(5)
    for table, write in WRITTEN.items():
        for _ in range(3):
            low, high = sorted(rng.sample(range(1, ROWS), 2))
            expected = 2 * sum(low <= key <= high for key in DAMAGED)
            found = missing(steps, table, first=write(low), last=write(high))
            assert found == expected, (table, low, high)


def test_keys_of_several_columns(steps: Steps) -> None:
    steps.everywhere(
        "CREATE TABLE pairs (day DATE, n INT, v INT, PRIMARY KEY (day, n))",
        "INSERT INTO pairs SELECT '2026-01-01' + INTERVAL seq DIV 10 DAY, seq % 10, seq FROM seq_1_to_59",
    )
    steps.must_be_equal("pairs", "v")
    settled(steps.feed)
    plain(steps, "pairs", without("v", *range(0, 60, 3)))
    days = {key: (f"2026-01-0{key // 10 + 1}", key % 10) for key in range(1, 60) if key % 3 == 0}
    assert missing(steps, "pairs", first="2026-01-02", last="2026-01-03") == 2 * sum(
        day in ("2026-01-02", "2026-01-03") for day, _ in days.values()
    )
    assert missing(steps, "pairs", first="2026-01-02,5", last="2026-01-03,3") == 2 * sum(
        ("2026-01-02", 5) <= of <= ("2026-01-03", 3) for of in days.values()
    )


def test_chunks_that_hold_a_row(steps: Steps) -> None:
    """Chunks have seven rows. Of a table whose keys only the server can order there is one chunk for each shard."""
    in_small_chunks(steps)
    for table in ("numbers", "texts"):
        plain(steps, table, without("id", *DAMAGED))
        verdict = compared(steps, table, where="id IN (20, 21) AND v = 'old' OR v LIKE '100%'")
        assert 0 < verdict.differences <= (8 if table == "numbers" else 60), table
        assert (verdict.parts[0] < verdict.parts[1]) == (table == "numbers"), table
        nothing = compared(steps, table, where="v = 'nobody''s'")
        assert (nothing.differences, nothing.parts[0]) == (0, 0), table
        alone = compared(steps, table, where="id = 1000")  # on one shard only
        assert {chunk.shard for chunks in alone.differing for chunk in chunks} <= {"a"}, table


@pytest.mark.promise("a portion of a table is compared and repaired in place")
def test_it_is_mended_in_its_place_while_readers_see_the_newest_epoch(
    steps: Steps, capsys: pytest.CaptureFixture[str]
) -> None:
    plain(steps, "numbers", without("id", *DAMAGED))
    table = f"{steps.schema}.numbers"
    asked = ["dump", "restart", str(steps.file), "--table", table, "--keys", "11..20"]
    assert execute(asked) == 0
    said = capsys.readouterr().out
    assert f"compared of {table}, keys 11..20 alone" in said
    assert "compared again: equal" in said
    assert newest(steps).stale == ()
    assert missing(steps, first="11", last="20") == 0
    assert missing(steps) == 2 * (len(DAMAGED) - 5)
    assert execute([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["portion"] == f"{table}, keys 11..20"
    assert execute(["dump", "restart", str(steps.file), "--table", table, "--shard", "b"]) == 0
    held, had = ([row for row in of("numbers", "k") if row[0] == "b"] for of in (steps.lake, steps.source))
    assert held == had
    assert missing(steps, shard="b") == 0
    assert missing(steps) == len(DAMAGED) - 5
    report = catchment.verify(
        steps.feed, [table], portion=Portion(TableId(steps.schema, "numbers")), repair=True
    )
    assert report.left == ()
    assert found(steps).differences == 0


def test_what_cannot_be_told_is_refused_before_anything_is_compared(
    steps: Steps, capsys: pytest.CaptureFixture[str]
) -> None:
    for portion, why in (
        ({"first": "x"}, r"'x' is no value of .*\.numbers\.k \(int\)"),
        ({"first": "1,2"}, r"is cut by \(k\), and 1,2 has 2 values"),
        ({"where": "nothing = 1"}, r"where: .*Unknown column 'nothing'"),
        ({"where": "1) OR (1"}, r"expected one condition of SQL"),
        ({"where": "1; DROP TABLE numbers"}, r"expected one condition of SQL"),
        ({"shard": "c"}, r"shard c: the feed has no such shard"),
    ):
        with pytest.raises(ConfigError, match=why):
            compared(steps, **portion)
    with pytest.raises(ConfigError, match="only the server can order the keys"):
        compared(steps, "texts", first="n0001")
    for options in (["--keys", "1..2"], ["--table", f"{steps.schema}.numbers", "--keys", "12"]):
        assert execute(["verify", str(steps.file), *options]) == ConfigError.exit_code
    said = capsys.readouterr().err
    assert "are of one table: name it with --table" in said
    assert "--keys 12: expected A..B, as in 100..200" in said
    catchment.dump(steps.file, "restart", f"{steps.schema}.numbers", wait=0)
    steps.set(copy={"chunk_rows_max": 7, "group_time": "0s", "throttle": {"flag_file": str(steps.file)}})
    with running(steps):
        wait(lambda: newest(steps).stale and not newest(steps).lost)
        with pytest.raises(
            StateError, match="is being copied: a portion of it can be compared when it is complete"
        ):
            compared(steps, first="1")
