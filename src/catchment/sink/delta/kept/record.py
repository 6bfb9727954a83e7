"""The record of kept epochs, a small Delta table that SQL joins with `_catchment/versions`.

A feed's epochs are one file, which each change replaces. An epoch leaves the record before anything of it is deleted.
"""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from catchment import world
from catchment.model.epoch_number import epoch_text
from catchment.model.location import Location
from catchment.sink.delta.files import read_rows, write_parquet
from catchment.sink.delta.layout import kept_dir
from catchment.sink.delta.log.actions import Action, Add, commit_info
from catchment.sink.delta.log.checkpoint import checkpoint
from catchment.sink.delta.log.commit import commit, create_table, fenced
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.statistics import delta_stats

NAME = "kept epochs"
SCHEMA = pa.schema([("feed", pa.string()), ("epoch", pa.int64()), ("epoch_text", pa.string())])


def kept_by_feed(root: Location) -> dict[str, tuple[int, ...]]:
    """The kept epochs of every feed of a lake, in order. Raises SinkError."""
    log = DeltaLog(kept_dir(root))
    on = log.newest()
    found: dict[str, list[int]] = {}
    for row in [] if on is None else _rows(log, on).sort_by("epoch").to_pylist():
        found.setdefault(row["feed"], []).append(row["epoch"])
    return {feed: tuple(epochs) for feed, epochs in found.items()}


class KeptEpochs:
    """The kept epochs of one feed."""

    def __init__(self, root: Location, feed: str) -> None:
        self._feed = feed
        self._log = DeltaLog(kept_dir(root))

    def epochs(self) -> tuple[int, ...]:
        """Their numbers, in order. Raises SinkError."""
        on = self._log.newest()
        return () if on is None else self._held(on)

    def change(self, fence: int, wanted: Callable[[tuple[int, ...]], tuple[int, ...]]) -> tuple[int, ...]:
        """Record what `wanted` makes of the epochs that are kept; those that are from now on. It may be asked again,
        where another change comes first. Raises LeaseLost when a later runner has written, SinkConflict, SinkError.
        """
        if self._log.newest() is None and not wanted(()):
            return ()

        def attempt(on: Snapshot) -> tuple[int, ...] | None:
            must_lead(on, self._feed, fence, NAME)
            held = self._held(on)
            after = wanted(held)
            return after if after == held or self._put(on, after, fence) else None

        found = commit(self._log, attempt, lambda: create_table(self._log, SCHEMA, []))
        checkpoint(self._log)
        return found

    def _put(self, on: Snapshot, epochs: tuple[int, ...], fence: int) -> bool:
        now_ms = world.now_us() // 1000
        gone = [file for file in on.files.values() if file.bounds().of("feed") == (self._feed, self._feed)]
        actions: list[Action] = [fenced(self._feed, fence)]
        actions += [file.removed(now_ms, data_change=True) for file in gone]
        if epochs:
            actions.append(self._written(epochs, now_ms))
        return self._log.put(on, commit_info("WRITE", now_ms), actions) is not None

    def _written(self, epochs: tuple[int, ...], now_ms: int) -> Add:
        path = f"{world.token()}.parquet"
        columns = [[self._feed] * len(epochs), list(epochs), [epoch_text(epoch) for epoch in epochs]]
        rows = pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)
        file = write_parquet(self._log.directory / path, [rows], SCHEMA)
        return Add(path, file.size, now_ms, True, delta_stats(file.footer, ("feed", "epoch")))

    def _held(self, on: Snapshot) -> tuple[int, ...]:
        rows = _rows(self._log, on)
        mine: list[int] = rows.filter(pc.equal(rows["feed"], self._feed))["epoch"].to_pylist()
        return tuple(sorted(mine))


def _rows(log: DeltaLog, on: Snapshot) -> pa.Table:
    files = (read_rows(log.directory / file.path, schema=SCHEMA) for file in on.files.values())
    return pa.concat_tables([SCHEMA.empty_table(), *files])
