"""Rows of XA transactions that were prepared before the stretch of log in which they are committed. Each is read from
where its PREPARE stands, in a small dump of its own (server id 0, so that many may run at once).
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.errors import COPY_AGAIN, CutMissed, Diverged, IncompleteImage, Purged
from catchment.model.image import GROUP, SEQ
from catchment.model.position import GroupKind, Prepared, Server
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.readers.unread import unread
from catchment.rewind.sequence import ImageSequence
from catchment.rewind.states import without_voids
from catchment.schema.passage import Stopped
from catchment.source.identity import purged_prepare
from catchment.source.log import read_log
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log import facts
from catchment.wire.log.facts import Images

# Numbers of image rows below those of any stretch, so that what it undid is not mistaken for them.
_SEQ_BASE = -(1 << 60)


class PreparedRows(Iterable[Images]):
    """The images of PREPARE groups, without those undone inside them, as images of the groups with the ordinals given.

    `earlier`: each transaction with that ordinal. `wanted` has the definitions where the transactions end; a prepared
    one keeps its tables from being altered. Pulling raises Purged naming XID and file, Diverged when another group
    stands there, CutMissed where it was not read to its end, IncompleteImage. `unread` has the tables of which rows
    could not be read.
    """

    def __init__(
        self, endpoint: Endpoint, server: Server, earlier: Iterable[tuple[Prepared, int]], wanted: Wanted
    ) -> None:
        self.read_bytes = 0  # so far
        self.unread: dict[TableId, Stopped] = {}  # so far
        self._endpoint = endpoint
        self._server = server
        self._earlier = earlier
        self._wanted = wanted

    def __iter__(self) -> Iterator[Images]:
        for prepared, ordinal in self._earlier:
            yield from self._counted(prepared, ordinal)

    def _counted(self, prepared: Prepared, ordinal: int) -> Iterator[Images]:
        """Those of one group: held back until it is known which of them it undid."""
        with ExitStack() as stack:
            kept: dict[Table, ImageSequence] = {}
            try:
                with read_log(
                    self._endpoint, self._server, prepared.start, prepared.end, self._wanted
                ) as log:
                    for images in log.images():
                        if images.table not in kept:
                            kept[images.table] = stack.enter_context(ImageSequence())
                        kept[images.table].add(pa.Table.from_batches([images.batch]))
            except Purged as error:
                raise purged_prepare(self._endpoint.shard, prepared) from error
            stretch = log.stretch
            must_be_prepared(self._endpoint.shard, prepared, stretch)
            self.read_bytes += stretch.read_bytes
            self.unread |= unread(self._endpoint.shard, stretch.facts)
            for table, sequence in kept.items():
                for part in sequence.tables():
                    for batch in _as_of(without_voids(part, stretch.voids), ordinal).to_batches():
                        yield Images(table, batch)


def _as_of(images: pa.Table, ordinal: int) -> pa.Table:
    """The images as those of another group."""
    groups, numbers = images.schema.get_field_index(GROUP), images.schema.get_field_index(SEQ)
    moved = pa.array(np.full(images.num_rows, ordinal, dtype=np.int64))
    images = images.set_column(groups, images.schema.field(groups), moved)
    below = pc.add(images.column(SEQ), _SEQ_BASE)
    return images.set_column(numbers, images.schema.field(numbers), below).combine_chunks()


def must_be_prepared(shard: str, prepared: Prepared, stretch: Stretch) -> None:
    """Raise unless the stretch is the one group that prepared the XA transaction."""
    group = stretch.xa[0] if stretch.xa else None
    if not stretch.reached_stop:
        raise CutMissed(
            f"shard {shard}: the log ends at {stretch.at}, inside the XA PREPARE from {prepared.start} to "
            f"{prepared.end}; it is read again"
        )
    known = group is not None and group.kind is GroupKind.XA_PREPARE and group.xid.parts == prepared.xid.parts
    if not (known and stretch.groups == 1):
        raise Diverged(
            f"shard {shard}: at {prepared.start} there is no XA PREPARE {prepared.xid} any more: the log is not "
            f"the one read before; {COPY_AGAIN}"
        )
    for fact in stretch.facts:
        if isinstance(fact, facts.PartialImage):
            error = IncompleteImage(
                f"shard {shard}, {fact.table} at {fact.at}: a row event lacks columns; set "
                "binlog_row_image=FULL globally and copy the table again"
            )
            error.place = str(fact.at)
            raise error
