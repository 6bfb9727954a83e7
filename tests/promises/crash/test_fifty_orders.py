"""Orders to a dump and kill -9, fifty in any order, beside writers: all is exact, and nothing was copied twice."""

import random
import time
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest

import catchment
from catchment.demo.server import PrivateServer
from catchment.model.epoch import Part
from catchment.model.table import TableId
from catchment.model.table_state import TableState
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import PART, tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.world.patience import PATIENCE_SECONDS

ROWS = 1500
TIMES = 50
_KILL = "kill"
DEEDS = ("start", "pause", "pause", "resume", "resume", "restart", _KILL)


class Operator:
    """Orders and kills of one feed, whose process begins again behind each kill."""

    def __init__(self, life: Life, seed: int) -> None:
        self.life, self.rng = life, random.Random(seed)
        self.done: Counter[str] = Counter()
        self.run = life.start("run")

    def act(self) -> None:
        """The next one, at any moment."""
        deed = self.rng.choice(DEEDS)
        if deed == _KILL:
            self.run.process.kill()
            self.run.process.wait()
            self.run = self.life.start("run")
        else:
            table = self.rng.choice([*self.life.keys, *([] if deed == "restart" else [None])])
            catchment.dump(self.life.file, deed, table, wait=self.rng.choice((0.0, 1.0)))
        self.done[deed] += 1
        time.sleep(self.rng.random())

    def end(self) -> None:
        """Have all copied, and stop."""
        catchment.dump(self.life.file, "start", wait=0)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(one.state is not TableState.FOLLOWING for one in catchment.tables(self.life.file)):
            assert time.monotonic() < deadline, catchment.tables(self.life.file)
            assert self.run.process.poll() is None, self.run.output.read_text()
            time.sleep(0.2)
        self.run.process.terminate()
        assert self.run.ended().code == 130, self.run.output.read_text()


def await_first_epoch(life: Life) -> None:
    """From then on a feed takes orders."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while EpochsTable(life.lake, "life").newest() is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)


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


@pytest.mark.wide
@pytest.mark.parametrize("seed", [1])
def test_fifty_orders_and_kills(pair: dict[str, PrivateServer], live: MakeLife, seed: int) -> None:
    life = live(pair)
    life.load(ROWS)
    life.describe(engine="local")
    operator = Operator(life, seed)
    await_first_epoch(life)
    with written(life):
        for _ in range(TIMES):
            operator.act()
        operator.end()
    print(operator.done)
    assert min(operator.done[deed] for deed in DEEDS) > 1
    must_be_copied_once(life)
    life.describe()
    assert life.run() == 0
    life.must_be_exact()
    must_be_copied_once(life)
