"""Rows of children that were brought back to an epoch by their images, brought back over what foreign keys did, too.

No log has these rows as they were. The lake has them as of the epoch. So a comparison takes from the lake what an event
after the epoch may have changed before the SELECT: the columns of the key, and whole rows that the event ended. All
else is compared. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.foreign_key import ForeignKey
from catchment.model.table import TableId
from catchment.rewind.cascades import cascades
from catchment.rewind.lives import Child, Lake
from catchment.rewind.parents import Side
from catchment.rewind.ranges import Mask
from catchment.wire.keys import keys


@dataclass(frozen=True)
class Doubtful:
    """Rows of a table in the lake that met an event after the epoch. `gone`: which of them an event ended. `passed`:
    the keys and the `columns` of foreign keys that such rows had between the epoch and the end of the log."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    rows: pa.Table
    gone: npt.NDArray[np.bool_]
    passed: pa.Table

    def within(self, mask: Mask | None) -> "Doubtful":
        """Those of the rows that a mask takes; None: all."""
        if mask is None:
            return self
        return replace(self, rows=self.rows.filter(pa.array(mask)), gone=self.gone[mask])

    def restored(self, rows: pa.Table) -> pa.Table:
        """Rows brought back by their images, as they were at the epoch if the lake is right."""
        if self.rows.num_rows == 0:
            return rows
        known = keys.KeySet(keys.encode(self.rows, self.key))
        at = known.find(keys.encode(rows, self.key))
        passed = np.isin(self._hashes(rows), self._hashes(self.passed))
        met = pa.array((at >= 0) & passed)
        theirs = self.rows.take(pa.array(np.maximum(at, 0)))
        for name in self.columns:
            column = rows.schema.get_field_index(name)
            values = theirs.column(name).cast(rows.schema.field(column).type)
            rows = rows.set_column(
                column, rows.schema.field(column), pc.if_else(met, values, rows.column(column))
            )
        lacking = ~keys.KeySet(keys.encode(rows, self.key)).contains(keys.encode(self.rows, self.key))
        ended = self.rows.filter(pa.array(lacking & self.gone))
        return pa.concat_tables([rows, ended.select(rows.schema.names).cast(rows.schema)])

    def _hashes(self, rows: pa.Table) -> npt.NDArray[np.uint64]:
        names = [*self.key, *(name for name in self.columns if name not in self.key)]
        return keys.hash_rows(rows.select(names).cast(self.passed.select(names).schema), names)


def doubtful(
    foreign_keys: Sequence[ForeignKey],
    sides: Mapping[TableId, Side],
    row_keys: Mapping[TableId, tuple[str, ...]],
    lake: Lake,
) -> dict[TableId, Doubtful]:
    """The rows of children that events of a stretch met, as the lake has them where it begins.

    Raises Unfollowed.
    """
    found = cascades(foreign_keys, sides, row_keys, lake)
    doubts = {table: _of(child, foreign_keys) for table, child in found.children.items()}
    return {table: one for table, one in doubts.items() if one is not None}


def _of(child: Child, foreign_keys: Sequence[ForeignKey]) -> Doubtful | None:
    changes = child.changes
    if changes is None or child.kept is None or not changes.first.any():
        return None
    columns = tuple(
        dict.fromkeys(name for key in foreign_keys if key.child == child.table for name in key.columns)
    )
    met = keys.KeySet(keys.encode(changes.before.filter(pa.array(changes.first)), child.key))
    rows = child.kept.filter(pa.array(met.contains(keys.encode(child.kept, child.key))))
    ended = keys.KeySet(keys.encode(changes.before.filter(pa.array(changes.ended)), child.key))
    gone = ended.contains(keys.encode(rows, child.key))
    names = list(dict.fromkeys([*child.key, *columns]))
    passed = pa.concat_tables(
        [rows.select(names).cast(changes.after.select(names).schema), changes.after.select(names)]
    )
    return Doubtful(child.key, columns, rows, gone, passed)
