"""Chunks of chosen keys: how a chunk holds them, and which rows are theirs."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from catchment.model.chunk import Chunk
from catchment.model.table import ShardTable
from catchment.rewind.ranges import Mask
from catchment.wire.keys.keys import KeySet, encode


def key_chunks(of: ShardTable, keys: pa.Table, size: int) -> Iterator[Chunk]:
    """Chunks of a table on a shard that have these keys, so many in each. `keys`: the source's key columns."""
    for begin in range(0, keys.num_rows, size):
        yield Chunk(*of, None, None, keys=_packed(keys.slice(begin, size)))


def keys_of(chunks: Sequence[Chunk]) -> pa.Table | None:
    """The keys of chunks that have chosen ones; None where they have all between their bounds."""
    if not chunks or not all(chunk.keys for chunk in chunks):
        return None
    return pa.concat_tables([_unpacked(chunk.keys) for chunk in chunks])


def having(rows: pa.Table, keys: pa.Table) -> Mask:
    """The rows that have one of the keys, byte by byte. `keys`: the key columns, with the types that they have in
    `rows`."""
    if not rows.num_rows:
        return np.zeros(0, np.bool_)
    names = keys.schema.names
    return np.asarray(KeySet(encode(keys, names)).contains(encode(rows, names)))


def _packed(keys: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.schema) as writer:
        writer.write_table(keys.combine_chunks())
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(keys: bytes) -> pa.Table:
    return pa.ipc.open_stream(keys).read_all()
