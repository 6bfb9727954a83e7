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
from catchment.sink.delta.layout import PART, delta_schema, epoch_app, tail_dir
from catchment.sink.delta.log.actions import Add, Txn, commit_info
from catchment.sink.delta.log.checkpoint import checkpoint
from catchment.sink.delta.log.commit import create_table
from catchment.sink.delta.plain.settle import SettleOrder
from catchment.sink.delta.plain.trim import trim
from catchment.sink.delta.tail.apply import DeltaSink
from catchment.sink.delta.upkeep.clean import Cleaner, Keeping
from catchment.sink.delta.upkeep.forget import Forgetting
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.logs import Logs
from catchment.sink.storage.local import LocalStorage
from catchment.world.real import Real
from tests.layers.sink.model import FEED, ORDERS, delta, manifest, write
from tests.world.records import name_of

KEYS = 50
# Of so many commits of the table one has a row in the epochs table, which costs as much as all of them.
_RECORDED = 5
_STATS = '{{"numRecords":1,"minValues":{{}},"maxValues":{{"_epoch":{}}}}}'
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


class Cleaned:
    """The commits of a busy table alone, without rows: epochs that are committed, trimmed and cleaned, an epoch every
    `apart` seconds. So a day of them takes seconds."""

    def __init__(self, root: Path, clock: Passing, apart: float) -> None:
        self.root, self._clock, self._apart = root, clock, apart
        self.epochs = EpochsTable(root, FEED)
        logs = Logs(root)
        self.plain, self.tail = logs(ORDERS)
        self.cleaner = Cleaner(root, FEED, self.epochs, logs)
        self._forgetting = Forgetting(self.epochs, logs)
        create_table(self.tail, delta_schema(ORDERS), [PART], FEED)

    def pass_by(self, epochs: int, *, turn: int) -> None:
        """Commit so many epochs; after every `turn` of them all that is kept up is brought in order."""
        for number in range(1, epochs + 1):
            self._clock.seconds += self._apart
            epoch = epoch_number(int(self._clock.seconds))
            on = self.tail.newest()
            assert on is not None
            name = f"{PART}=changes/{epoch}-a-0.parquet"
            (tail(self.root) / name).parent.mkdir(exist_ok=True)
            (tail(self.root) / name).touch()
            add = Add(name, 0, 0, True, _STATS.format(epoch), {PART: Part.CHANGES.value})
            marks = Txn(epoch_app(FEED, ORDERS.table), epoch)
            assert (
                self.tail.put(on, commit_info("WRITE", self._clock.now_us() // 1000), [marks, add])
                is not None
            )
            if number % _RECORDED == 0:
                record = replace(manifest(epoch, (ORDERS,)), previous=epoch - 1)
                versions = {str(ORDERS.table): on.version + 1}
                self.epochs.append(record, Commit(epoch, name_of(record), self._clock.now_us(), versions), 1)
            if number % turn == 0:
                self.turn(epoch)

    def turn(self, epoch: int) -> None:
        """Trim the tail, join the files of the epochs table, write checkpoints, clean."""
        trim(SettleOrder(self.plain, self.tail, ORDERS, FEED, 1, epoch), epoch)
        self.epochs.compact(1)
        self.epochs.checkpoint()
        checkpoint(self.tail)
        self.clean()
        newest = self.epochs.newest()
        assert newest is not None
        self._forgetting.drop(1, newest.manifest, (), ())

    def clean(self) -> None:
        """A turn of the cleaner."""
        self.cleaner.clean(Keeping(3600.0, 20.0))


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
def passing(seconds: float) -> Iterator[Passing]:
    """A clock of the test's own, which begins so many seconds ago."""
    clock = Passing(seconds)
    with world.instead(clock):
        yield clock
