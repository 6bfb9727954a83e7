"""kill -9 of a run whose strategy reads rows in front of the cut: between its marks, and with staged rows that wait."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.layout import staged_dir
from catchment.sink.delta.upkeep.clean import Keeping
from catchment.source.marks import HIGH, LOW, make_marks, marks_session
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.world.marks import by, marks_allowed, sides
from tests.world.patience import until
from tests.world.settled import clean_feed

pytestmark = pytest.mark.mariadb(
    "MySQL tells no place in the log with a snapshot, and marks are not proven there"
)

CATCH_UP = "--until-caught-up"
# Less than a run waits for a mark.
SECONDS = 8


def staged(life: Life) -> list[Path]:
    return list(staged_dir(life.lake, "life").glob("*.arrow"))


def waits_for_a_mark(server: PrivateServer) -> bool:
    return any(
        "INSERT INTO" in str(row[7]) for row in server.sql("SHOW FULL PROCESSLIST") if row[1] == FEED_USER
    )


def test_a_run_killed_between_its_marks_and_behind_its_stage_goes_on_exactly(
    pair: dict[str, PrivateServer], live: MakeLife, fresh_schema: Callable[..., str]
) -> None:
    life = live(pair)
    marks = marks_allowed(pair.values(), fresh_schema(*pair.values()))
    life.load(100)
    copying = {"chunk_rows_max": 10, "group_time": "0s", "groups_per_shard": 2}
    life.describe(copy={**copying, **by("watermark", marks)})
    server, slow = pair["-80"], f"{marks.split('.')[0]}.slow"
    with marks_session(life.feed.endpoints()[0]) as session:
        make_marks(session, TableId.parse(marks))
    waits = f"SET @slept = SLEEP(IF(NEW.side = {HIGH}, {SECONDS}, 0))"
    server.sql(f"CREATE TRIGGER {slow} BEFORE UPDATE ON {marks} FOR EACH ROW {waits}")
    run = life.told(CATCH_UP)
    until(
        "a chunk between its marks",
        lambda: run.process.poll() is not None or (LOW in sides(server, marks) and waits_for_a_mark(server)),
    )
    os.killpg(run.pid, signal.SIGKILL)
    assert run.ended().code == -signal.SIGKILL
    server.sql(f"DROP TRIGGER {slow}")
    for strategy in ("snapshot", "watermark"):
        life.describe(copy={**copying, **by(strategy, marks)})
        with written(life):
            for fault in ("after-stage:2", "after-manifest:2"):
                ended = life.told(CATCH_UP, fault=fault).ended()
                assert ended.code == -signal.SIGKILL, f"{fault}: {ended}"
                life.must_hold_no_key_twice()
    orphans = staged(life)
    assert orphans, "a run that was killed with staged rows leaves them"
    assert life.run() == 0
    life.must_be_exact()
    assert all(sides(one, marks) == [] for one in pair.values())
    assert set(staged(life)) == set(orphans)
    clean_feed(life.lake, "life", Keeping(3600, 0))
    assert staged(life) == []
    life.must_be_exact()
