"""A feed of one busy table over days of made-up time: epochs, settles and clean-ups, and what they leave behind."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from catchment import world
from catchment.model.epoch import Commit, Part, TableDelta
from catchment.model.epoch_number import epoch_number
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.storage.local import LocalStorage
from catchment.world.real import Real
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, write
from tests.world.records import name_of

KEYS = 50
# Questions of a storage, each a request to an object store.
_QUESTIONS = ("read", "read_range", "opened", "stored", "listed", "below", "directories")


class Passing(Real):
    """A clock that only the test moves. It ends at the present, so that no file is younger than its own time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = Real().now_us() / 1e6 - seconds

    def now_us(self) -> int:
        return int(self.seconds * 1e6)

    def steady_seconds(self) -> float:
        return self.seconds


class Left(msgspec.Struct, frozen=True):
    """What a table has on its disk: bytes of the newest checkpoint and of all log, files of the log, data files."""

    checkpoint: int
    log_bytes: int
    log_files: int
    data_files: int


class BusyFeed:
    """One table that changes in each epoch; an epoch every `apart` seconds."""

    def __init__(self, root: Path, clock: Passing, apart: float, *, keep: float = 3600.0) -> None:
        self.root, self._clock, self._apart = root, clock, apart
        self._sink, self._epochs = DeltaSink(root, FEED), EpochsTable(root, FEED)
        self._keeper = Keeper(str(root), FEED)
        self._order = UpkeepOrder(str(root), FEED, 1, keep, attempt_seconds=20.0)
        self._committed = 0

    def epochs(self, count: int, *, settle: int, clean: int) -> None:
        """Commit so many epochs; the table is settled after every `settle` of them, and cleaned after every `clean`."""
        for _ in range(count):
            self._clock.seconds += self._apart
            self._committed += 1
            self._epoch(self._committed)
            if self._committed % settle == 0:
                self.keep_up(cleans=self._committed % clean == 0)

    def keep_up(self, *, cleans: bool) -> None:
        """A turn of the upkeep."""
        self._keeper.carry_out(replace(self._order, cleans=cleans))

    def _epoch(self, number: int) -> None:
        now_us = self._clock.now_us()
        epoch = epoch_number(now_us // 1_000_000)
        file = write(
            self.root, ORDERS, Part.CHANGES, f"{epoch}-a-0", [("s/0", epoch, False, (number % KEYS, "x"))]
        )
        made: TableDelta = delta(ORDERS, file)
        record = replace(manifest(epoch, (ORDERS,), made), previous=number - 1)
        record = replace(record, cut=replace(record.cut, time_us=now_us))
        versions = self._sink.apply_epoch(record, 1)
        self._epochs.append(record, Commit(epoch, name_of(record), now_us, versions), 1)


def tail(root: Path) -> Path:
    """The tail of the table."""
    return tail_dir(root, ORDERS.table)


def left(directory: Path) -> Left:
    """What lies in a table's directory."""
    log = [path for path in (directory / "_delta_log").iterdir() if path.is_file()]
    checkpoints = sorted(path for path in log if path.name.endswith(".checkpoint.parquet"))
    return Left(
        checkpoints[-1].stat().st_size if checkpoints else 0,
        sum(path.stat().st_size for path in log),
        len(log),
        sum(1 for path in directory.rglob("*.parquet") if path.parent.name != "_delta_log"),
    )


@contextmanager
def questions() -> Iterator[Callable[[], int]]:
    """How many questions this process asks of local storage in the block: the returned function tells it so far."""
    asked = 0
    within = threading.local()
    originals = {name: getattr(LocalStorage, name) for name in _QUESTIONS}

    def counted(original: Callable[..., object]) -> Callable[..., object]:
        def ask(*arguments: object, **named: object) -> object:
            nonlocal asked
            if getattr(
                within, "question", False
            ):  # a list asks for each file, which an object store tells at once
                return original(*arguments, **named)
            asked += 1
            within.question = True
            try:
                return original(*arguments, **named)
            finally:
                within.question = False

        return ask

    with pytest.MonkeyPatch.context() as patch:
        for name, original in originals.items():
            patch.setattr(LocalStorage, name, counted(original))
        yield lambda: asked


@contextmanager
def busy_feed(root: Path, epochs: int, apart: float) -> Iterator[BusyFeed]:
    """A feed whose last epoch of so many is of now."""
    clock = Passing(epochs * apart)
    with world.instead(clock):
        yield BusyFeed(root, clock, apart)
