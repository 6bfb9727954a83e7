"""A plain table and its tail: whatever is settled, joined and trimmed when, each epoch is read right."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from catchment.api.read import read
from catchment.model.epoch import Part
from catchment.sink.delta.layout import table_dir
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.feeder import Feeder
from tests.layers.sink.lakes import files_of
from tests.layers.sink.model import FEED, ORDERS, delta, write
from tests.world.settled import carry_out

SHARDS = ("s/0", "s/1")
Key = tuple[str, int]


class Copied:
    """Epochs of a table that is copied while it changes. `states`: its rows as of each epoch, by (shard, key)."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.feeder = Feeder(root)
        self.rng = rng
        self.left = [(shard, key) for shard in SHARDS for key in range(40)]
        self.state: dict[Key, tuple[int, str]] = {}
        self.states: dict[int, dict[Key, tuple[int, str]]] = {}

    def commit(self) -> None:
        """An epoch with a chunk, with changes, or with both."""
        feeder, rng = self.feeder, self.rng
        feeder.epoch += 1
        epoch, files = feeder.epoch, []
        copied = sorted(set((s, k) for s in SHARDS for k in range(40)) - set(self.left))
        touched = rng.sample(copied, min(len(copied), rng.randrange(7)))
        if touched:
            changes = []
            for shard, key in touched:
                dies = rng.random() < 0.3
                changes.append((shard, epoch, dies, (key, f"{epoch}")))
                self.state.pop((shard, key), None)
                if not dies:
                    self.state[shard, key] = (epoch, f"{epoch}")
            files.append(write(feeder.root, ORDERS, Part.CHANGES, f"{epoch}-a-0", changes))
        chunk = [self.left.pop() for _ in range(min(len(self.left), rng.choice((0, 0, 6, 15))))]
        if chunk:
            rows = [(shard, epoch, False, (key, "copied")) for shard, key in sorted(chunk)]
            files.append(write(feeder.root, ORDERS, Part.BASE, f"{epoch}-b-0", rows))
            self.state |= {key: (epoch, "copied") for key in chunk}
        feeder.commit((ORDERS,), *([delta(ORDERS, *files)] if files or epoch == 1 else []))
        self.states[epoch] = dict(self.state)

    def keep_up(self) -> None:
        """What the process beside a run does."""
        carry_out(UpkeepOrder(str(self.feeder.root), FEED, 1, 3600.0))

    def expected(self, epoch: int) -> list[tuple[Any, ...]]:
        return sorted((s, e, k, v) for (s, k), (e, v) in self.states[epoch].items())


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in range(1, 4))])
def test_every_epoch_is_read_right_whatever_is_settled(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    table = Copied(tmp_path, rng)
    table.commit()
    while table.feeder.epoch < (12 if seed == 0 else 25):
        table.commit()
        if rng.random() < 0.4:
            table.keep_up()
        epoch = rng.randint(1, table.feeder.epoch)
        assert sorted(read(tmp_path, "shop.orders", epoch).duckdb().fetchall()) == table.expected(epoch)
    plain = DeltaLog(table_dir(tmp_path, ORDERS.table)).newest()
    assert plain is not None
    assert any(file.dead for file in plain.files.values())
    for epoch in table.states:
        state = read(tmp_path, "shop.orders", epoch)
        assert sorted(state.duckdb().fetchall()) == table.expected(epoch)
        assert sorted(tuple(row.values()) for row in state.arrow().to_pylist()) == table.expected(epoch)


@pytest.mark.wide
def test_spark_reads_what_lives(tmp_path: Path, spark: SparkSession) -> None:
    table = Copied(tmp_path, random.Random(9))
    table.commit()
    while table.feeder.epoch < 24:
        table.commit()
        if table.feeder.epoch % 5 == 0:
            table.keep_up()
        if table.feeder.epoch % 4 == 0:
            state = files_of(read(tmp_path, "shop.orders"))
            rows = sorted(map(tuple, state.spark(spark).collect()))
            assert rows == table.expected(table.feeder.epoch)
    assert state.worn
