"""One attempt to carry out an order beside the feed: in a thread where little is to be done, else in a process."""

import threading
from collections.abc import Callable
from typing import Protocol

from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError
from catchment.model.location import Location, location
from catchment.sink.delta.layout import generation_of, ours_dir, table_dir
from catchment.sink.delta.upkeep.keeper import Keeper, UpkeepOrder
from catchment.sink.delta.upkeep.process import Outcome
from catchment.sink.delta.upkeep.settler import Settler
from catchment.sink.storage.choice import storage_of

# A settle reads the keys of every data file of a table that has changes. So much of it takes a tenth of a second.
LIGHT_BYTES = 16 * 1024 * 1024
# Each is opened twice, which takes 20 ms.
LIGHT_TABLES = 20


class Attempt(Protocol):
    """Work in hand, which may be waited for."""

    def outcome(self, seconds: float | None = 0.0) -> Outcome | None:
        """How it ended, waited for so long (None: to its end); None while it goes on."""
        ...

    def abandon(self) -> None:
        """Wait for it no longer: the run ends."""
        ...


def begin(keeper: Keeper, settler: Settler, order: UpkeepOrder, newest: Manifest | None) -> Attempt:
    """Begin to carry out an order: by `keeper`, as of the newest epoch if that is known, or by a process.

    Raises OSError where no process can be started.
    """
    return InThread(lambda: keeper.carry_out(order, newest)) if is_light(order) else settler.order(order)


def is_light(order: UpkeepOrder) -> bool:
    """Whether an order takes so little that a process would mostly start."""
    if order.cleans:
        return False
    try:
        root = location(order.root)
        if order.tables is None:
            directories = _plain_tables(root)
        else:
            directories = [table_dir(root, table) for table in order.tables]
        return len(directories) <= LIGHT_TABLES and sum(map(_data_bytes, directories)) <= LIGHT_BYTES
    except OSError:
        return False  # the process meets the same, and tells it


def _plain_tables(root: Location) -> list[Location]:
    """The directories of all plain tables, as far as tails stand beside them."""
    storage, ours = storage_of(root), ours_dir(root)
    tails = [ours / name for name in storage.directories(ours) if generation_of(name) is not None]
    schemas = [(tail, schema) for tail in tails for schema in storage.directories(tail)]
    found = {(schema, table) for tail, schema in schemas for table in storage.directories(tail / schema)}
    return [root / schema / table for schema, table in sorted(found)]


def _data_bytes(directory: Location) -> int:
    """Bytes of a table's data files, replaced ones too."""
    return sum(one.size for one in storage_of(directory).listed(directory, ".parquet"))


class InThread:
    """By a thread of this process. It does not keep the process from its end: what it writes may be repeated."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._outcome: Outcome | None = None
        self._thread = threading.Thread(target=self._run, args=(work,), name="settle", daemon=True)
        self._thread.start()

    def outcome(self, seconds: float | None = 0.0) -> Outcome | None:
        """As the protocol has it."""
        self._thread.join(seconds)
        return self._outcome

    def abandon(self) -> None:
        """As the protocol has it; the thread ends with the process."""

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except CatchmentError as error:
            self._outcome = Outcome(error.exit_code, str(error))
        except Exception as error:
            self._outcome = Outcome(CatchmentError.exit_code, f"{type(error).__name__}: {error}")
        else:
            self._outcome = Outcome(0)
