"""Runner, settler, cleaner and readers at the same time: every read is one exact epoch."""

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from catchment.api.read import read, tables_at
from catchment.model.epoch import Commit, Part
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.plain.tail import Limits
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.upkeep.clean import Keeping
from catchment.sink.delta.upkeep.keeper import UpkeepOrder
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, write
from tests.world.records import name_of
from tests.world.settled import carry_out, clean_feed

EPOCHS, EPOCHS_MAX = 15, 600  # more than the first where settles or readers get no time
KEYS = 40
State = dict[int, tuple[int, str]]  # id -> epoch of the last change, sig


@pytest.mark.wide
def test_reads_are_exact_while_all_run(tmp_path: Path) -> None:
    expected: dict[int, State] = {}
    done = threading.Event()
    failures: list[BaseException] = []
    settles: list[int] = []
    reads: list[int] = []

    def repeat(work: Callable[[], None]) -> threading.Thread:
        def loop() -> None:
            try:
                while not done.is_set():
                    work()
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=loop)
        thread.start()
        return thread

    def settle() -> None:
        order = UpkeepOrder(str(tmp_path), FEED, 1, 3600, limits=Limits(rows=20))
        settles.extend(carry_out(order).changes.values())

    def look() -> None:
        epoch = max(list(expected), default=None)
        if epoch is None:
            return
        rows = read(tmp_path, "shop.orders", epoch).arrow().to_pylist()
        assert {r["id"]: (r["_epoch"], r["sig"]) for r in rows} == expected[epoch]
        reads.append(epoch)

    threads = [repeat(settle), repeat(look), repeat(lambda: clean(tmp_path))]
    try:
        for epoch in run_epochs(tmp_path, expected):
            if epoch >= EPOCHS and (failures or (len(settles) >= 2 and len(set(reads)) >= 2)):
                break
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert len(settles) >= 2
    assert len(set(reads)) >= 2
    for epoch, state in list(expected.items())[::-4]:
        rows = read(tmp_path, "shop.orders", epoch).arrow().to_pylist()
        assert {r["id"]: (r["_epoch"], r["sig"]) for r in rows} == state
    assert tables_at(tmp_path, max(expected))["shop.orders"] > max(expected)


def clean(root: Path) -> None:
    clean_feed(root, FEED, Keeping(3600, 0))


def run_epochs(root: Path, expected: dict[int, State]) -> Iterator[int]:
    """Epochs of random upserts and deletes, one for each turn; `expected` gets an epoch once readers may see it."""
    sink, epochs, rng = DeltaSink(root, FEED), EpochsTable(root, FEED), random.Random(7)
    state: State = {}
    for epoch in range(1, EPOCHS_MAX + 1):
        rows = [("s/0", epoch, rng.random() < 0.3, (i, f"v{epoch}")) for i in rng.sample(range(KEYS), 6)]
        record = manifest(
            epoch, (ORDERS,), delta(ORDERS, write(root, ORDERS, Part.CHANGES, f"{epoch}-a-0", rows))
        )
        versions = sink.apply_epoch(record, 1)
        epochs.append(record, Commit(epoch, name_of(record), 1, versions), 1)
        for _, number, deleted, (key, sig) in rows:
            state.pop(key, None)
            if not deleted:
                state[key] = (number, sig)
        expected[epoch] = dict(state)
        yield epoch
