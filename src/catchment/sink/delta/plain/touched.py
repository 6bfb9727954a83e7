"""Which rows of a data file die by a settle: those whose (shard, key) has a newer change.

The file itself is asked, a scan of its key columns, unless its bounds in the log rule it out. So there is no state that
could disagree with the table. Where the key begins with an integer, that column alone is searched first.
"""

from collections.abc import Mapping
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

from catchment.model.location import Location
from catchment.sink.delta.files import lake_parquet
from catchment.sink.delta.layout import SHARD
from catchment.sink.delta.log.delta_log import LakeFile
from catchment.wire.keys.keys import Keys, KeySet, encode
from catchment.wire.keys.search import is_ordered

Values = npt.NDArray[np.int64]


class Changed:
    """The keys that changed, made ready to be looked for in many files. `keys`: their columns, the shard first."""

    def __init__(self, keys: pa.Table) -> None:
        self._columns = keys.column_names
        self._rows = keys
        self._lock = Lock()
        self._known: KeySet | None = None
        self._ordered: Mapping[str, Keys] | None = None
        self._first = self._columns[1]
        self._shards = _of_shards(keys, self._first)
        found = [shard.distinct for shard in self._shards.values()] if self._shards else []
        self._all = _distinct(np.concatenate(found)) if found else None

    def may_touch(self, file: LakeFile) -> bool:
        """Whether a file may hold one of the keys, by the bounds that the log has of it."""
        bounds = file.bounds()
        shards, keys = bounds.of(SHARD), bounds.of(self._first)
        if self._shards is None or shards is None or keys is None:
            return True
        return any(
            shards[0] <= name <= shards[1] and shard.distinct[0] <= keys[1] and keys[0] <= shard.distinct[-1]
            for name, shard in self._shards.items()
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of (shard, key)."""
        return tuple(self._columns)

    @property
    def are_integers(self) -> bool:
        """Whether the keys begin with an integer, so that a scan is cheap."""
        return self._shards is not None

    def within(self, file: LakeFile) -> int:
        """How many of the keys a file may hold, at most, by the bounds that the log has of it."""
        bounds = file.bounds().of(self._first)
        if self._all is None or bounds is None:
            return int(self._rows.num_rows)
        low, behind = np.searchsorted(self._all, bounds[0]), np.searchsorted(self._all, bounds[1], "right")
        return int(behind) - int(low)

    def by_shard(self) -> Mapping[str, Keys]:
        """The keys of each shard, encoded without it, in order."""
        with self._lock:
            if self._ordered is None:
                self._ordered = _in_order(self._rows)
            return self._ordered

    def rows(self, path: Location) -> BitMap:
        """Row numbers of a file, from 0, that hold one of the keys, dead ones too. Raises SinkError."""
        found = BitMap()
        if not self._rows.num_rows:
            return found
        first = 0
        with lake_parquet(path, read_dictionary=[SHARD]) as file:
            for group in range(file.num_row_groups):
                found |= BitMap((self._in_group(file, group) + first).astype(np.uint32))
                first += file.metadata.row_group(group).num_rows
        return found

    def _in_group(self, file: pq.ParquetFile, group: int) -> Values:
        """Row numbers of a row group, from 0, that hold one of the keys."""
        if self._shards is None or self._all is None:
            return self._of_keys(file.read_row_group(group, columns=self._columns))
        name = only_shard(file.metadata.row_group(group))
        shard = self._shards.get(name) if name is not None else None
        if name is not None and shard is None:
            return np.empty(0, np.int64)
        values = file.read_row_group(group, columns=[self._first])[self._first].to_numpy()
        places = holding(values, self._all if shard is None else shard.distinct)
        if not len(places) or (shard is not None and len(self._columns) == 2):
            return places
        if shard is None:
            rows = file.read_row_group(group, columns=self._columns).take(pa.array(places))
            return places[self._of_keys(rows)]
        # The keys of one file are a small set, which a core's cache holds.
        first = values[places]
        wanted = shard.between(first.min(), first.max())
        rows = file.read_row_group(group, columns=self._columns[2:]).take(pa.array(places))
        found = encode(rows.append_column(self._first, pa.array(first)), self._columns[1:])
        return places[KeySet(encode(wanted, self._columns[1:])).contains(found)]

    def _of_keys(self, rows: pa.Table) -> Values:
        """The places of rows that hold one of the keys."""
        shard = rows.schema.get_field_index(SHARD)
        plain = rows.set_column(shard, SHARD, rows[SHARD].cast(pa.string()))
        return np.flatnonzero(self._set().contains(encode(plain, self._columns)))

    def _set(self) -> KeySet:
        """The keys as a set. Where integers alone tell them apart it is never made."""
        with self._lock:
            if self._known is None:
                self._known = KeySet(encode(self._rows, self._columns))
            return self._known


def holding(values: Values, wanted: Values) -> Values:
    """The places of values that are among the wanted ones, which are in order and differ. Values in order are found by
    the wanted ones, which are fewer as a rule."""
    if not len(values) or not len(wanted):
        return np.empty(0, np.int64)
    if not np.all(values[1:] >= values[:-1]):
        place = np.searchsorted(wanted, values)
        place[place == len(wanted)] = 0
        return np.flatnonzero(wanted[place] == values)
    low, high = np.searchsorted(wanted, values[0]), np.searchsorted(wanted, values[-1], "right")
    if int(values[-1]) - int(values[0]) == len(values) - 1 and np.all(values[1:] > values[:-1]):
        # Numbers without a gap, as AUTO_INCREMENT gives them.
        at: Values = wanted[low:high].astype(np.int64) - int(values[0])
        return at
    begins = np.searchsorted(values, wanted[low:high])
    counts = np.searchsorted(values, wanted[low:high], "right") - begins
    before = np.cumsum(counts) - counts
    return np.repeat(begins - before, counts) + np.arange(counts.sum())


def _of_shards(rows: pa.Table, key: str) -> Mapping[str, "_ShardKeys"] | None:
    """The keys of each shard, None for keys that do not begin with an integer."""
    if not pa.types.is_integer(rows.schema.field(key).type):
        return None
    shards = rows[SHARD].combine_chunks().dictionary_encode()
    codes, names = shards.indices.to_numpy(), shards.dictionary.to_pylist()
    if len(names) == 1:
        return {names[0]: _ShardKeys(rows, key)}
    return {name: _ShardKeys(rows.filter(pa.array(codes == code)), key) for code, name in enumerate(names)}


class _ShardKeys:
    """Keys of one shard that begin with an integer. `distinct`: these integers, in order, once each."""

    def __init__(self, rows: pa.Table, key: str) -> None:
        values = rows[key].to_numpy()
        if np.any(values[1:] < values[:-1]):
            order = np.argsort(values, kind="stable")
            rows, values = rows.take(pa.array(order)), values[order]
        self._rows, self._values = rows, values
        self.distinct = _distinct(values)

    def between(self, least: int, largest: int) -> pa.Table:
        """The keys whose integers lie between these two, or are one of them."""
        begin = int(np.searchsorted(self._values, least))
        return self._rows.slice(begin, int(np.searchsorted(self._values, largest, "right")) - begin)


def _in_order(rows: pa.Table) -> Mapping[str, Keys]:
    """By shard the keys of its rows, encoded, in order."""
    shards = rows[SHARD].combine_chunks().dictionary_encode()
    codes, names = shards.indices.to_numpy(), shards.dictionary.to_pylist()
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(names)), "right").tolist()
    rows, found = rows.take(pa.array(order)), {}
    for shard, begin, end in zip(names, [0, *ends], ends, strict=False):
        keys = encode(rows.slice(begin, end - begin), rows.column_names[1:])
        if not is_ordered(keys):
            binary = keys.to_binary()
            keys = Keys.from_binary(binary.take(pc.sort_indices(binary)))
        found[shard] = keys
    return found


def _distinct(values: Values) -> Values:
    """The values in order, once each. They mostly come so, which a stable sort takes in one pass."""
    found = np.sort(values, kind="stable")
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found


def only_shard(group: pq.RowGroupMetaData) -> str | None:
    """The shard of all rows of a row group; None where there may be several."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == SHARD and column.is_stats_set and column.statistics.has_min_max:
            least, largest = column.statistics.min, column.statistics.max
            return str(least) if least == largest else None
    return None
