"""What a segment of a log holds for the lake: images of the keys that are followed, and the tables as they were met."""

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import pyarrow as pa

from catchment.model.chunk import chunk_key
from catchment.model.epoch import TableShape
from catchment.model.errors import Unsupported
from catchment.model.image import GROUP, SEQ
from catchment.model.of_tables import Lazily
from catchment.model.shard import Copy
from catchment.model.table import Table, TableId
from catchment.rewind.keyless import with_keys
from catchment.rewind.ranges import follows_log
from catchment.rewind.retyped import Retyped
from catchment.rewind.spool import Spool
from catchment.schema.passage import MetTable, Stopped
from catchment.wire.log.facts import Images


class SegmentImages:
    """Spools of the images that are followed, by table, and the tables of which a row came that has no key, or lacks
    columns of it: what their spools have is no use. Use as a context manager, which gives memory and disk back.

    Images of one definition come together, and those of XA transactions prepared before the stretch come last. So they
    are out of the log's order, and the number of an image tells what is newest.
    """

    def __init__(
        self, shard: str, shapes: Mapping[TableId, TableShape], copying: Mapping[TableId, Copy]
    ) -> None:
        self.spools: dict[TableId, Spool] = {}
        self.keyless: dict[TableId, Stopped] = {}
        self._shard = shard
        self._shapes = shapes
        self._copying = copying
        self._retyped = Lazily(shapes, lambda table: Retyped(shapes[table].key))
        self._newest: dict[TableId, tuple[int, int, Table]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, read: Images) -> None:
        """Keep what is followed of the images. Raises SourceError, TemporaryDisk."""
        table, key = read.table, self._shapes[read.table.id].key
        self._meet(read)
        if table.id in self.keyless:
            return
        if lacking := [name for name in key if read.batch.schema.get_field_index(name) < 0]:
            # Of an earlier table of this name, or behind an ALTER that no log has.
            why = f"shard {self._shard}, {table.id}: rows in the log lack {', '.join(lacking)} of its key"
            self.keyless[table.id] = Stopped(table.id, why)
            return
        try:
            images = with_keys(pa.Table.from_batches([read.batch]), key, f"shard {self._shard}, {table.id}")
        except Unsupported as why:
            self.keyless[table.id] = Stopped(table.id, str(why))
            return
        images = self._retyped[table.id].apart(images)
        mask = follows_log(images, chunk_key(Table(table.id, table.columns, key)), self._copied(table.id))
        if table.id not in self.spools:
            self.spools[table.id] = self._stack.enter_context(Spool(key))
        self.spools[table.id].add(images if mask is None else images.filter(pa.array(mask)))

    def met(self) -> dict[TableId, MetTable]:
        """The tables as the last of their row events describes them."""
        return {name: MetTable(table, group) for name, (_, group, table) in self._newest.items()}

    def _meet(self, read: Images) -> None:
        number, group = read.batch.column(SEQ)[-1].as_py(), read.batch.column(GROUP)[-1].as_py()
        name = read.table.id
        if name not in self._newest or number > self._newest[name][0]:
            self._newest[name] = number, group, read.table

    def _copied(self, table: TableId) -> Copy:
        return self._copying.get(table, Copy(table, done=True))
