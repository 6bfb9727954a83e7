"""Rows of XA transactions that were prepared before the stretch of log in which they are committed. Each is read from
where its PREPARE stands, in a small dump of its own (server id 0, so that many may run at once).
"""

from collections.abc import Iterable
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.errors import NEW_FEED, Diverged, IncompleteImage, Purged
from catchment.model.image import GROUP, SEQ
from catchment.model.position import GroupKind, Prepared, Server
from catchment.model.source import Endpoint
from catchment.model.table import Table
from catchment.rewind.sequence import ImageSequence
from catchment.rewind.states import without_voids
from catchment.source.identity import purged_prepare
from catchment.source.segment import Stretch, read_stretch
from catchment.source.wanted import Handlers, OnImages, Wanted
from catchment.wire.log import facts

# Numbers of image rows below those of any stretch, so that what it undid is not mistaken for them.
_SEQ_BASE = -(1 << 60)


def read_prepared(
    endpoint: Endpoint,
    server: Server,
    earlier: Iterable[tuple[Prepared, int]],
    wanted: Wanted,
    on_images: OnImages,
) -> int:
    """Hand on the images of each PREPARE group, without those undone inside it, as images of the group with the
    ordinal given; the bytes read.

    `wanted` has the definitions where the transactions end; a prepared one keeps its tables from being altered.

    Raises Purged naming XID and file, Diverged when another group stands there, IncompleteImage.
    """
    size = 0
    for prepared, ordinal in earlier:
        with ExitStack() as stack:
            kept: dict[Table, ImageSequence] = {}

            def collect(
                table: Table,
                batch: pa.RecordBatch,
                stack: ExitStack = stack,
                kept: dict[Table, ImageSequence] = kept,
            ) -> None:
                if table not in kept:
                    kept[table] = stack.enter_context(ImageSequence())
                kept[table].add(pa.Table.from_batches([batch]))

            try:
                stretch = read_stretch(
                    endpoint, server, prepared.start, prepared.end, wanted, Handlers(collect)
                )
            except Purged as error:
                raise purged_prepare(endpoint.shard, prepared) from error
            must_be_prepared(endpoint.shard, prepared, stretch)
            size += stretch.read_bytes
            for table, images in kept.items():
                for part in images.tables():
                    for batch in _as_of(without_voids(part, stretch.voids), ordinal).to_batches():
                        on_images(table, batch)
    return size


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
    known = group is not None and group.kind is GroupKind.XA_PREPARE and group.xid.parts == prepared.xid.parts
    if not (known and stretch.reached_stop and stretch.groups == 1):
        raise Diverged(
            f"shard {shard}: at {prepared.start} there is no XA PREPARE {prepared.xid} any more: the log is not "
            f"the one read before; start {NEW_FEED} to copy again"
        )
    for fact in stretch.facts:
        if isinstance(fact, facts.IncompleteImage):
            raise IncompleteImage(
                f"shard {shard}, {fact.table} at {fact.at}: a row event lacks columns; set "
                f"binlog_row_image=FULL globally and copy the table again with {NEW_FEED}"
            )
