"""Copies chunks of children of foreign keys as of the cut to which a shard's log was read.

A SELECT behind the cut may miss rows that went with their parents since, and no image brings them back. So a view from
in front of the cut is asked, and its rows are brought forward to the cut by the images of the log and what keys did.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from catchment import world
from catchment.epoch.work import CopiedChunk
from catchment.model.chunk import Chunk, chunk_key
from catchment.model.epoch import TableShape
from catchment.model.errors import ConnectionLost, CorruptResult, Diverged, OtherServer, SourceError
from catchment.model.foreign_key import above
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.readers.copy import GroupRows
from catchment.rewind.forward import with_fates
from catchment.rewind.keyless import must_have_keys
from catchment.rewind.lives import Fates, Unfollowed
from catchment.rewind.ranges import covered
from catchment.rewind.states import net, rewound
from catchment.serve.stream.family import Family, acts, log_since, must_be_unaltered, silent_in
from catchment.source.view import View

Read = tuple[CopiedChunk, pa.Table]


def copied_children(
    endpoint: Endpoint,
    state: ShardState,
    shapes: Mapping[TableId, TableShape],
    view: View,
    chunks: Sequence[Chunk],
) -> GroupRows:
    """Chunks of one shard's children as of `state`. Those are refused of which it is not known what they are as of
    there. Raises CatchmentError."""
    reads: dict[TableId, list[Read]] = {}
    refused: list[tuple[Chunk, str]] = []
    rows: dict[TableId, pa.Table] = {}
    for table in dict.fromkeys(chunk.table for chunk in chunks):
        mine = [chunk for chunk in chunks if chunk.table == table]
        try:
            selected = [_selected(endpoint, view, shapes[table], chunk) for chunk in mine]
            rows[table] = _at_cut(endpoint, state, shapes, view, table, selected)
            reads[table] = selected
        except (ConnectionLost, Diverged, OtherServer):
            raise
        except (SourceError, CorruptResult, Unfollowed) as error:
            refused += [(chunk, str(error)) for chunk in mine]
    copied = {table: tuple(one for one, _ in found) for table, found in reads.items()}
    return GroupRows(rows, copied, tuple(refused), 0, frozenset())


def _selected(endpoint: Endpoint, view: View, shape: TableShape, chunk: Chunk) -> Read:
    began = world.steady_seconds()
    rows = view.chunk(shape.definition, chunk)
    must_have_keys(rows, shape.key, f"shard {endpoint.shard}, {shape.table}")
    return CopiedChunk(chunk, rows.num_rows, rows.nbytes, world.steady_seconds() - began), rows


def _at_cut(
    endpoint: Endpoint,
    state: ShardState,
    shapes: Mapping[TableId, TableShape],
    view: View,
    table: TableId,
    selected: Sequence[Read],
) -> pa.Table:
    """The rows of a table's chunks as of the state. Raises Unfollowed, and CatchmentError."""
    known = state.keys or ()
    above_it = {table} | above(known, frozenset({table}))
    keys = tuple(key for key in known if key.child in above_it)
    for key in keys:
        if not {key.child, key.parent} <= shapes.keys():
            raise Unfollowed(
                table, f"the {key} may have changed rows, and one of its tables cannot be followed"
            )
    at = state.position.at
    family = Family(endpoint, state.position, keys, shapes, state.definitions, view, at)
    log = log_since(family, keys, at)
    fates: Fates | None = None
    if acts(family, log.images, log.torn):
        fates = silent_in(family, keys, log.images, log.behind).fates.get(table)
    else:
        must_be_unaltered(family, keys)
    rows = pa.concat_tables([found for _, found in selected])
    images = log.images.get(table)
    if images is not None and images.num_rows:
        shape = shapes[table]
        states = net(images, shape.key)
        bounds = [(one.chunk.lo, one.chunk.hi) for one, _ in selected]
        mask = covered(states, chunk_key(shape.definition), bounds)
        rows = rewound(rows, states if mask is None else states.filter(pa.array(mask)), shape.key)
    return rows if fates is None else with_fates(rows, fates)
