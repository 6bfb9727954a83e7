"""kill -9 of the driver at every named place in the life of one feed: the same command goes on."""

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

CATCH_UP = ("run", "--until-caught-up")
# More tables than the sink has threads: when one is committed, others have not begun.
TABLES = 12


def applied(life: Life) -> set[int]:
    """The epochs that the lake's tables carry, 0 for a table that is not there."""
    found = set()
    for name in life.keys:
        table = open_table(tail_dir(life.lake, TableId.parse(name)))
        found.add((table and table.transaction_version(epoch_app("life", TableId.parse(name)))) or 0)
    return found


# Without Java, which takes seconds to start; all places with Spark are for the long run.
IN_SHORT = ("after-manifest:2", "between-applies:30", "after-apply:2", "during-settle:2")
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


@pytest.mark.parametrize(
    ("engine", "faults"),
    [("local", IN_SHORT), pytest.param("spark", ALL, marks=pytest.mark.long)],
    ids=["in short", "all"],
)
def test_a_driver_killed_at_every_place_goes_on_exactly(
    pair: dict[str, PrivateServer],
    spark: SparkContext,
    live: MakeLife,
    engine: str,
    faults: tuple[str, ...],
) -> None:
    life = live(pair, count=TABLES)
    life.load(100)
    life.describe(engine=engine)
    with written(life):
        for fault in faults:
            ended = life.command(*CATCH_UP, fault=fault)
            assert ended.code == -signal.SIGKILL, f"{fault}: {ended}"
            if fault.startswith("between"):
                assert len(applied(life)) > 1, "the crash did not come between two tables"
        life.describe(engine=engine, sink=life.settled_late)
        life.make_large()
        assert life.command(*CATCH_UP, fault="during-settle:1").code == 0
        settled = life.command("settle", fault="during-settle:1")
        assert settled.code == -signal.SIGKILL, settled
    life.describe()
    assert life.run() == 0
    life.must_be_exact()
    assert execute(["settle", str(life.file)]) == 0
    life.must_be_exact()
