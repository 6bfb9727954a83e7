"""Keys that are looked for in data files, whatever version names these.

A file's own statistics tell which of its row groups cannot have one, so files that no log names are asked the same way.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

from catchment.model.epoch import TableShape
from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.model.table import Kind
from catchment.sink.delta.files import exists, lake_parquet
from catchment.sink.delta.layout import SHARD, key_columns
from catchment.sink.erasure import Erasure, Spelling
from catchment.wire.keys.keys import KeySet, encode

Numbers = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


class Held(msgspec.Struct, frozen=True):
    """Rows of a file that have a key, dead ones too, in order. `keys`: the number of each row's key, from 0. `other`:
    which of them have it in another spelling."""

    rows: Numbers
    keys: Numbers
    other: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def positions(self) -> BitMap:
        """The rows as a vector names them."""
        return BitMap(self.rows.astype(np.uint32))


class Sought:
    """The keys of an erasure, made ready to be looked for in many files."""

    def __init__(self, erasure: Erasure, shape: TableShape) -> None:
        self._columns = key_columns(shape)
        self._texts = _texts(shape) if erasure.spelling is not Spelling.EXACT else ()
        self._shard = erasure.shard
        keys = erasure.keys.rename_columns(list(self._columns))
        self._exact = KeySet(encode(keys, self._columns))
        self._loose = KeySet(encode(_folded(keys, self._texts), self._columns)) if self._texts else None
        first = keys[self._columns[0]]
        self._first = np.unique(first.to_numpy()) if pa.types.is_integer(first.type) else None

    def held_in(self, path: Location) -> Held:
        """The rows of a file that have one of the keys. Raises SinkError, and FileNotFoundError where it is gone."""
        asked = [*self._columns, *([SHARD] if self._shard is not None else [])]
        rows, keys, other = [_NONE], [_NONE], [np.empty(0, np.bool_)]
        first = 0
        if not exists(path):  # another process has deleted it since it was listed
            raise FileNotFoundError(str(path))
        with lake_parquet(path) as file:
            lacking = set(asked) - set(file.schema_arrow.names)
            if lacking:
                raise SinkError(
                    f"{path} has no column {', '.join(sorted(lacking))}, so nobody can tell whose rows it has; move it "
                    "out of the lake if it is none of the lake's"
                )
            for group in range(file.num_row_groups):
                about = file.metadata.row_group(group)
                if self._may_hold(about):
                    found, of, differs = self._in_rows(file.read_row_group(group, columns=asked))
                    rows.append(found + first)
                    keys.append(of)
                    other.append(differs)
                first += about.num_rows
        return Held(np.concatenate(rows), np.concatenate(keys), np.concatenate(other))

    def _may_hold(self, group: pq.RowGroupMetaData) -> bool:
        """Whether a row group may have a key, by its bounds of the first key column, where that is an integer."""
        if self._first is None:
            return True
        columns = (group.column(place) for place in range(group.num_columns))
        stats = next(c.statistics for c in columns if c.path_in_schema == self._columns[0])
        if stats is None or not stats.has_min_max:
            return True
        place = np.searchsorted(self._first, stats.min)
        return bool(place < len(self._first) and self._first[place] <= stats.max)

    def _in_rows(self, rows: pa.Table) -> tuple[Numbers, Numbers, npt.NDArray[np.bool_]]:
        keys = self._exact.find(encode(rows, self._columns))
        other = np.zeros(len(keys), np.bool_)
        if self._loose is not None:
            loose = self._loose.find(encode(_folded(rows, self._texts), self._columns))
            other = (keys < 0) & (loose >= 0)
            keys = np.where(other, loose, keys)
        found = keys >= 0
        if self._shard is not None:
            found &= pc.equal(rows[SHARD], self._shard).to_numpy()
        places = np.flatnonzero(found)
        return places, keys[places], other[places]


def _texts(shape: TableShape) -> tuple[str, ...]:
    """The key columns that a collation compares."""
    kinds = {c.physical: c.column.type.kind for c in shape.columns}
    return tuple(name for name in key_columns(shape) if kinds[name] is Kind.TEXT)


def _folded(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """Rows without what most collations do not regard: case, accents, spaces at the end."""
    for name in texts:
        plain = pc.replace_substring_regex(pc.utf8_normalize(rows[name], "NFKD"), r"\p{M}", "")
        folded = pc.utf8_rtrim_whitespace(pc.utf8_lower(pc.utf8_upper(plain)))
        rows = rows.set_column(rows.schema.get_field_index(name), name, folded)
    return rows
