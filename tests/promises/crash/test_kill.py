"""kill -9 of a run at named places in the life of one feed: the same command goes on, exactly."""

import signal

import pytest
from pyspark import SparkContext

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from catchment.sink.delta.layout import epoch_app, tail_dir
from catchment.sink.delta.log.opened import open_table
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written

CATCH_UP = "--until-caught-up"
# More tables than the sink has threads: when one is committed, others have not begun.
TABLES = 12
ALL = (
    "between-applies:1",  # of the epoch that makes the tables
    "after-plan:2",
    "during-read:3",
    "after-manifest:2",
    "between-applies:30",
    "after-apply:2",
    "after-epoch-row:2",
    "during-settle:1",
    "during-settle:3",
)


def applied(life: Life) -> set[int]:
    """The epochs that the lake's tables carry, 0 for a table that is not there."""
    found = set()
    for name in life.keys:
        table = open_table(tail_dir(life.lake, TableId.parse(name)))
        found.add((table and table.transaction_version(epoch_app("life", TableId.parse(name)))) or 0)
    return found


def killed(life: Life, fault: str) -> None:
    """Run the feed, which is killed at a place."""
    ended = life.told(CATCH_UP, fault=fault).ended()
    assert ended.code == -signal.SIGKILL, f"{fault}: {ended}"
    if fault.startswith("between"):
        assert len(applied(life)) > 1, "the kill did not come between two tables"


@pytest.mark.promise("after a kill of the runner the same command resumes and applies nothing twice")
def test_a_run_killed_between_two_tables_and_in_a_settle_goes_on_exactly(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    life = live(pair, count=TABLES)
    life.load(60)
    with written(life):
        for fault in ("between-applies:30", "during-settle:2"):
            killed(life, fault)
    assert life.run() == 0
    life.must_be_exact()
    assert execute(["settle", str(life.file)]) == 0
    life.must_be_exact()


def test_a_settle_that_is_killed_as_a_process_leaves_the_run_and_the_next_settle_alone(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    """Beside a run it is a process of the run's, and a command of its own where there is no run."""
    life = live(pair)
    life.load(40)
    life.describe(sink=life.settled_late)
    life.make_large()
    assert life.told(CATCH_UP, fault="during-settle:1").ended().code == 0
    settled = life.command("settle", fault="during-settle:1")
    assert settled.code == -signal.SIGKILL, settled
    life.describe()
    assert life.run() == 0
    life.must_be_exact()
    assert life.settled(next(iter(life.keys)))


@pytest.mark.long
def test_a_run_with_spark_killed_at_every_place_goes_on_exactly(
    pair: dict[str, PrivateServer], spark: SparkContext, live: MakeLife
) -> None:
    life = live(pair, count=TABLES)
    life.load(100)
    life.describe(engine="spark")
    with written(life):
        for fault in ALL:
            killed(life, fault)
    assert life.run() == 0
    life.must_be_exact()
