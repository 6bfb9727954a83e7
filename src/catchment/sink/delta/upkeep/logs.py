"""The logs of a feed's tables, each of which is read on from where it was read before."""

from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.sink.delta.layout import Tail, table_dir, tail_of
from catchment.sink.delta.log.delta_log import DeltaLog


class Logs:
    """Those of the lake at `root`."""

    def __init__(self, root: Location) -> None:
        self._root = root
        self._known: dict[Tail, tuple[DeltaLog, DeltaLog]] = {}
        self._asked: set[Tail] = set()

    def __call__(self, shape: TableShape) -> tuple[DeltaLog, DeltaLog]:
        """Of a table as an epoch has it: that of the plain table, and that of the tail."""
        copy = Tail.of(shape)
        self._asked.add(copy)
        if copy not in self._known:
            plain, tail = table_dir(self._root, shape.lake_table), tail_of(self._root, shape)
            self._known[copy] = DeltaLog(plain), DeltaLog(tail)
        return self._known[copy]

    def forget_others(self) -> None:
        """Forget the logs of which nobody has asked since this was called last."""
        self._known = {copy: logs for copy, logs in self._known.items() if copy in self._asked}
        self._asked = set()
