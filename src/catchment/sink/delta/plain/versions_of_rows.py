"""Versions of rows: what changes of some epochs begin, and what they end.

A version lasts from the epoch of its change to that of the next one of its key. The epochs' seconds are its times.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from catchment.model.epoch_number import MICRO_BITS
from catchment.model.location import Location
from catchment.model.table import ENDED, VALID_FROM, VALID_TO
from catchment.sink.delta.conform import conform
from catchment.sink.delta.layout import DELETED, EPOCH
from catchment.sink.delta.log.delta_log import LakeFile
from catchment.sink.delta.plain.rows import rows_of
from catchment.wire.keys.keys import KeySet, encode

Epochs = npt.NDArray[np.int64]
_OPEN = -1
_ENDS = pa.schema([pa.field(ENDED, pa.int64())])
_MICROSECONDS = 1_000_000


class RowVersions:
    """The versions that changes bring, which are in the order of epochs. `keys`: the columns of each key. Its first
    change ends the version that was open."""

    def __init__(self, changes: pa.Table, identity: Sequence[str], schema: pa.Schema) -> None:
        self._identity, self._schema = identity, schema
        binary = encode(changes, identity).to_binary()
        order = pc.sort_indices(binary)  # a stable sort: epochs of a key stay in order
        rows, sorted_keys = changes.take(order), binary.take(order)
        same = pc.equal(sorted_keys[:-1], sorted_keys[1:]).to_numpy(zero_copy_only=False)
        epochs = rows[EPOCH].to_numpy()
        ended = np.append(np.where(same, epochs[1:], _OPEN), _OPEN)[: len(epochs)]
        begins = np.append(True, ~same)[: len(epochs)]
        first = rows.filter(pa.array(begins)).combine_chunks()
        self.keys = first.select(list(identity))
        self._ends, self._first = first[EPOCH].to_numpy(), KeySet(encode(first, identity))
        # A chunk of collated keys and the log of its epoch may bring one row twice.
        lasts = ~rows[DELETED].to_numpy() & (ended != epochs)
        kept = pa.array(lasts)
        self._began = with_times(rows.filter(kept), ended[lasts], schema)

    @property
    def open(self) -> pa.Table:
        """The versions that last."""
        return self._began.filter(pc.is_null(self._began[ENDED]))

    @property
    def ended(self) -> pa.Table:
        """Those that a later change has ended."""
        return self._began.filter(pc.is_valid(self._began[ENDED]))

    def ends_of(self, rows: pa.Table) -> Epochs:
        """Of each row the epoch in which the changes end it, if it is open; -1 where they leave it alone."""
        place = self._first.find(encode(rows, self._identity))
        return np.where(place >= 0, np.append(self._ends, _OPEN)[place], _OPEN)


def with_times(rows: pa.Table, ended: Epochs, schema: pa.Schema) -> pa.Table:
    """Rows as versions that end with these epochs; -1: they last. `schema` has columns for that."""
    lasts = pa.array(ended == _OPEN)
    until = pc.if_else(lasts, pa.scalar(None, pa.int64()), pa.array(ended))
    columns = {
        ENDED: until,
        VALID_FROM: _times(rows[EPOCH].to_numpy(), None, schema),
        VALID_TO: _times(ended, lasts, schema),
    }
    rest = conform(rows, pa.schema([field for field in schema if field.name not in columns]))
    values = [columns[name] if name in columns else rest[name] for name in schema.names]
    return pa.Table.from_arrays(values, schema=schema)


def _times(epochs: Epochs, missing: pa.Array | None, schema: pa.Schema) -> pa.Array:
    kind = schema.field(VALID_FROM).type
    times = pa.array((epochs >> MICRO_BITS) * _MICROSECONDS).cast(kind)
    return times if missing is None else pc.if_else(missing, pa.scalar(None, kind), times)


def may_be_open(file: LakeFile) -> bool:
    """Whether a file may have versions that last, as far as the log tells."""
    return file.bounds().null_count.get(ENDED) != 0


def open_rows(path: Location, rows: BitMap) -> BitMap:
    """Those of some rows of a file that are versions that last. Raises SinkError."""
    parts = [part[ENDED].is_null().to_numpy() for part in rows_of(path, rows, _ENDS)]
    numbers = np.asarray(rows.to_array(), np.uint32)
    return BitMap(numbers[np.concatenate([np.empty(0, np.bool_), *parts])])
