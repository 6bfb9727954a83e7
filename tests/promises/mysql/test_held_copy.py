"""A copy that an XA transaction holds back: on MySQL nothing is proven visible while one stays prepared."""

from functools import partial

import pytest

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.epoch import standstill
from catchment.state.faults import Fault
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import run_here
from tests.world.patience import until
from tests.world.prepared import prepare, roll_back_prepared
from tests.world.servers.launch import PrivateMySQL

_LOG_BUDGET = 1 << 20
_BEYOND = 2_000_000_000


def _last_line(life: Life, capsys: pytest.CaptureFixture[str]) -> str:
    """What `status` says last of a table that is not copied."""
    assert execute(["status", str(life.file)]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    return said if "is not copied yet" in said else ""


@pytest.mark.promise("a copy that cannot advance says why, and resumes later")
def test_a_shard_whose_floor_stays_behind_is_told_and_copied_later(
    mysql_server: PrivateMySQL,
    live: MakeLife,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_here(monkeypatch)
    monkeypatch.setattr(standstill, "_HELD_FROM", 3)
    life = live({"-80": mysql_server}, count=1)
    life.load(300)
    life.touch(0)  # moves keys above 100,000, as writers may before the first cut
    life.describe(copy={"chunk_rows_max": 5, "group_time": "0s", "log_budget": f"{_LOG_BUDGET}B"})
    (table,) = life.keys
    mysql_server.sql(f"CREATE TABLE {life.schema}.ballast (id INT PRIMARY KEY, b LONGTEXT)")
    left = [1]

    def hold_back(place: Fault) -> None:
        if place is Fault.AFTER_EPOCH_ROW and left:
            left.pop()
            prepare(mysql_server, "'left'", f"UPDATE {table} SET v = 77 WHERE id = 3")
            mysql_server.sql(f"INSERT INTO {life.schema}.ballast VALUES (1, REPEAT('x', {2 * _LOG_BUDGET}))")

    try:
        with FeedRun(life.feed, hold_back) as run:
            with written(life):
                run.wait("it is told", lambda epochs: "no rows were copied" in caplog.text)
                # No writer has a key as large, so the first cut saw none either: the log alone brings its row.
                mysql_server.sql(f"INSERT INTO {table} VALUES ({_BEYOND}, 9, 'in the log')")
                epoch = run.wait_for_log(life.servers)
                assert not epoch.cut.copied
                assert read(life.feed, table, epoch.epoch).arrow()["id"].to_pylist().count(_BEYOND) == 1
                # `status` has it from the plan of an epoch, while one is made.
                shown = until("a status with it", partial(_last_line, life, capsys))
                roll_back_prepared(mysql_server)
                run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
            run.wait_for_log(life.servers)
    finally:
        roll_back_prepared(mysql_server)
    why = "what is proven visible lies more log behind than copy.log_budget; transactions that XA RECOVER lists there"
    (told,) = [
        record.getMessage() for record in caplog.records if "no rows were copied" in record.getMessage()
    ]
    assert told.startswith(f"shard -80: no rows were copied in 3 epochs in a row: {why}")
    assert shown.startswith(f"{table} is not copied yet on shard -80 (try ")
    assert why in shown
    life.must_be_exact(table)
