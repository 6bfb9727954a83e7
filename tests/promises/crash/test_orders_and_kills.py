"""Orders to a dump and kill -9 beside writers: all is exact, and nothing was copied twice."""

import random
from collections import Counter
from typing import Any

import pyarrow.parquet as pq

import catchment
from catchment.cli.output import EXIT_INTERRUPTED
from catchment.demo.server import PrivateServer
from catchment.model.epoch import Part
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import PART, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.world.told import ToldRun

ROWS = 600
SEED = 1
_KILL = "kill"
# A kill comes behind an order that is answered, one that is open, and in the midst of a new copy.
DEEDS = (
    "pause",
    _KILL,
    "resume",
    "restart",
    "pause",
    _KILL,
    "start",
    "restart",
    "resume",
    _KILL,
    "restart",
    "start",
)


class Operator:
    """Orders and kills of one feed, whose process begins again behind each kill."""

    def __init__(self, life: Life) -> None:
        self.life, self.rng = life, random.Random(SEED)
        self.run = self._begun()

    def act(self, deed: str) -> None:
        """The next one, at any moment: behind the answer of the one before, or while that is open."""
        if deed == _KILL:
            self.run.kill()
            self.run = self._begun()
            return
        table = self.rng.choice([*self.life.keys, *([] if deed == "restart" else [None])])
        kept = catchment.dump(self.life.file, deed, table, wait=0)
        if self.rng.random() < 0.5:
            number = kept[-1].number
            self.run.wait("an answer", lambda event: event["event"] == "order" and event["number"] >= number)

    def end(self) -> None:
        """Have all copied, and stop."""
        (*_, last) = catchment.dump(self.life.file, "start", wait=0)
        self.run.wait_for("order", number=last.number)
        if set(self.run.states().values()) != {"following"}:
            self.run.wait("all is copied", lambda event: event["event"] == "caught_up")
        self.run.process.terminate()
        assert self.run.ended().code == EXIT_INTERRUPTED

    def _begun(self) -> ToldRun:
        """From its first epoch on a feed takes orders."""
        run = self.life.told()
        run.wait_for("epoch")
        return run


def must_be_copied_once(life: Life) -> None:
    """Of each copy of a table every epoch goes on where the one before stood, and no key came in two chunks. Those of
    keys with a collation lie elsewhere, and are not looked at."""
    stood: dict[tuple[TableId, int], int] = {}
    for row in EpochsTable(life.lake, "life").read_all():
        for shape in row.manifest.shapes:
            place = (shape.table, shape.generation)
            rows = sum(copy.rows for copy in row.manifest.cut.copies if copy.table == shape.table)
            assert rows >= stood.get(place, 0), f"{place} in epoch {row.manifest.epoch}"
            stood[place] = rows
    assert len(stood) > len(life.keys)
    for (table, generation), rows in stood.items():
        key = life.keys[str(table)]
        if key != ("name",):
            keys = chunk_keys(life, table, generation, key)
            assert keys.total() >= 0.9 * rows
            assert not [one for one, times in keys.items() if times > 1], (table, generation)


def chunk_keys(life: Life, table: TableId, generation: int, key: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """Shards and keys of all chunks that were ever committed to a tail."""
    log = DeltaLog(tail_dir(life.lake, table, generation))
    on = log.newest()
    assert on is not None
    lines = [line for version in range(on.version + 1) for line in log.lines_of(version) or ()]
    added = [line.add for line in lines if line.add is not None]
    files = [log.directory / add.file for add in added if add.partition_values[PART] == Part.BASE.value]
    found: Counter[tuple[Any, ...]] = Counter()
    for file in files:
        rows = pq.ParquetFile(str(file)).read(columns=["_shard", *key]).to_pylist()
        found.update(tuple(row.values()) for row in rows)
    return found


def test_orders_and_kills(pair: dict[str, PrivateServer], live: MakeLife) -> None:
    life = live(pair)
    life.load(ROWS)
    operator = Operator(life)
    with written(life):
        for deed in DEEDS:
            operator.act(deed)
        operator.end()
    must_be_copied_once(life)
    assert life.run() == 0
    life.must_be_exact()
    must_be_copied_once(life)
