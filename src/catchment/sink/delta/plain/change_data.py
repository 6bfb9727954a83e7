"""What a settle changes, row by row, for those who take only that: Delta's change data feed.

Readers take a commit's changes from its `cdc` files alone, where it has any (Delta protocol: Change Data Files).
"""

import uuid
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.sink.delta.files import write_parquet
from catchment.sink.delta.layout import CHANGE_TYPE, Change, identity_columns
from catchment.sink.delta.log.actions import Cdc
from catchment.sink.delta.plain.arranged import pieces
from catchment.sink.delta.plain.shape import plain_schema
from catchment.wire.keys.keys import KeySet, encode

DIRECTORY = "_change_data"


class ChangeData:
    """The change data of one commit, in a file for each source of changes. `actions`: what names them."""

    def __init__(self, directory: Location, shape: TableShape, epoch: int) -> None:
        self.actions: list[Cdc] = []
        self._directory, self._shape, self._epoch = directory, shape, epoch
        self._rows = plain_schema(shape)
        self._schema = self._rows.append(pa.field(CHANGE_TYPE, pa.string()))
        self._identity = identity_columns(shape)

    def changed(self, died: Iterable[pa.Table], rows: pa.Table) -> None:
        """Rows that die, and those that come. A key that had a row and gets one is updated."""
        self._write(self._images(died, rows))

    def inserted(self, rows: Iterable[pa.Table]) -> None:
        """Rows of keys that had none."""
        self._write(self._typed(part, Change.INSERT) for part in rows)

    def deleted(self, rows: Iterable[pa.Table]) -> None:
        """Rows of keys that have none any more."""
        self._write(self._typed(part, Change.DELETE) for part in rows)

    def replaced(self, before: Iterable[pa.Table], after: Iterable[pa.Table]) -> None:
        """Rows as they were, and as they are from now on."""
        self._write(self._typed(part, Change.BEFORE) for part in before)
        self._write(self._typed(part, Change.AFTER) for part in after)

    def _images(self, died: Iterable[pa.Table], rows: pa.Table) -> Iterator[pa.Table]:
        keys = encode(rows, self._identity)
        coming, gone = KeySet(keys), [rows.select(self._identity).slice(0, 0)]
        for part in died:
            updated = coming.contains(encode(part, self._identity))
            yield self._typed(part, Change.DELETE, Change.BEFORE, updated)
            gone.append(part.select(self._identity))
        updated = KeySet(encode(pa.concat_tables(gone), self._identity)).contains(keys)
        yield self._typed(rows, Change.INSERT, Change.AFTER, updated)

    def _typed(
        self,
        rows: pa.Table,
        change: Change,
        where: Change | None = None,
        mask: npt.NDArray[np.bool_] | None = None,
    ) -> pa.Table:
        """Rows with their type: `change`, or `where` the mask says so."""
        types = np.full(rows.num_rows, change.value, object)
        if where is not None:
            types[mask] = where.value
        return rows.select(self._rows.names).append_column(
            self._schema.field(CHANGE_TYPE), pa.array(types, pa.string())
        )

    def _write(self, parts: Iterable[pa.Table]) -> None:
        """Files of the parts that have rows, arranged as the table's; none where none has."""
        filled = (part for part in parts if part.num_rows)
        first = next(filled, None)
        if first is None:
            return
        for piece in pieces(chain([first], filled), self._shape):
            path = f"{DIRECTORY}/cdc-{self._epoch}-{uuid.uuid4().hex[:12]}.parquet"
            file = write_parquet(self._directory / path, piece.rows, self._schema)
            self.actions.append(Cdc(path, file.size, piece.values))
