"""What the doctor prints: equal findings of many shards once, the tables, and lines to paste."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.cli.doctor import lines
from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.doctor import Diagnosis, Finding, Severity
from catchment.doctor.finding import TableFound, on_shards
from tests.promises.exact.steps import Steps

SHARDS = tuple(f"s{n}" for n in range(64))


def warned(shard: str, found: str) -> Finding:
    return Finding(Severity.WARNING, shard, found, "a risk", "a remedy")


def test_where() -> None:
    assert on_shards(["-80"], 64) == "shard -80"
    assert on_shards(["-80", "80-"], 2) == "both shards"
    assert on_shards(["-80", "80-"], 64) == "shards -80, 80-"
    assert on_shards(["-80", "80-", "c"], 64) == "shards -80, 80- and 1 more"
    assert on_shards(SHARDS, 64) == "all 64 shards"


def test_equal_findings_of_many_shards_are_one() -> None:
    findings = [warned(shard, "sync_binlog is 0") for shard in SHARDS]
    findings += [warned(shard, "its clock is off") for shard in SHARDS[:5]]
    findings += [
        *(Finding(Severity.ERROR, shard, f"shard {shard}, shop.x: no key") for shard in SHARDS),
        Finding(Severity.ERROR, "s8", "shard s8 at db8:3306: refused"),
        Finding(Severity.ERROR, "s7", "shard s7: log file binlog.000001 is no longer there"),
        Finding(Severity.OK, "", "the lake can be written"),
    ]
    tables = (
        TableFound("shop.orders", 60_450, ("id",), SHARDS),
        TableFound("shop.lines", 1, ("order_id", "n"), SHARDS[:1]),
    )
    said = list(lines(Diagnosis(SHARDS, tuple(findings), tables, ('- "!shop.log"', '- "!shop.x"'))))
    assert said == [
        "warning  all 64 shards: sync_binlog is 0",
        "         risk: a risk",
        "         do:   a remedy",
        "warning  shards s0, s1 and 3 more: its clock is off",
        "         risk: a risk",
        "         do:   a remedy",
        "error    all 64 shards: shop.x: no key",
        "error    shard s8 at db8:3306: refused",
        "error    shard s7: log file binlog.000001 is no longer there",
        "ok       the lake can be written",
        "",
        "table        rows, about  key          on",
        "shop.orders  60,450       id           all 64 shards",
        "shop.lines   1            order_id, n  shard s0",
        "",
        "2 tables cannot be carried: paste these lines under `tables`, or set `unusable: skip`",
        '  - "!shop.log"',
        '  - "!shop.x"',
        "",
        "3 errors, 2 warnings",
    ]


@pytest.fixture
def steps(shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path) -> Steps:
    made = Steps(tmp_path, {"a": shard}, fresh_schema(shard))
    made.sql("a", "CREATE TABLE t (id INT, n INT, PRIMARY KEY (n, id))", "CREATE TABLE nopk (id INT)")
    made.sql("a", "INSERT INTO t VALUES (1, 1), (2, 1)", "ANALYZE TABLE t")
    return made


def test_tables_and_exclusions(steps: Steps, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "feed.yaml")
    assert execute(["doctor", file, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    s = steps.schema
    assert found["shards"] == ["a"]
    assert found["tables"] == [{"table": f"{s}.t", "rows": 2, "key": ["n", "id"], "shards": ["a"]}]
    assert found["exclusions"] == [f'- "!{s}.nopk"']
    assert any(f"{s}.nopk: there is no primary key" in f["found"] for f in found["findings"])
    steps.set(unusable="skip")
    assert execute(["doctor", file]) == 0
    out = capsys.readouterr().out
    assert f"warning  shard a: {s}.nopk: there is no primary key" in out
    assert "cannot be carried:" not in out
