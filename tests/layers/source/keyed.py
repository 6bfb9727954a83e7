"""A table on a server, read by the product's code, in chunks of its key."""

from collections.abc import Iterator

import pyarrow as pa

from catchment.model.chunk import Bound, Chunk, chunk_key
from catchment.model.table import TableId
from catchment.rewind.ranges import covered
from catchment.source.ask_ranges import inside
from catchment.source.bounds import key_after, newest_key
from catchment.source.catalog import read_table
from catchment.source.select import select_chunk
from catchment.source.session import Session
from catchment.wire.keys.keys import Keys, encode, hash_rows

Range = tuple[Bound | None, Bound | None]


class Keyed:
    """Reads one table by a session."""

    def __init__(self, session: Session, table: TableId) -> None:
        self.session = session
        self.table = read_table(session, table)
        self.key = chunk_key(self.table)

    def newest(self) -> Bound | None:
        return newest_key(self.session, self.table.id, self.key)

    def after(self, lo: Bound | None, end: Bound | None, step: int) -> Bound | None:
        """The key that is so many rows behind `lo`."""
        return key_after(self.session, self.table.id, self.key, lo, end, step)

    def select(self, lo: Bound | None = None, hi: Bound | None = None) -> pa.Table:
        return select_chunk(self.session, self.table, Chunk("s", self.table.id, lo, hi)).combine_chunks()

    def chunks(self, step: int) -> Iterator[tuple[Range, pa.Table]]:
        """Ranges and rows, walking the index in steps up to the key that was the largest at the start."""
        end, lo = self.newest(), None
        while True:
            hi = self.after(lo, end, step)
            yield (lo, hi or end), self.select(lo, hi or end)
            if hi is None:
                return
            lo = hi

    def encoded(self, rows: pa.Table) -> Keys:
        return encode(rows, self.table.key)

    def within(self, rows: pa.Table, reach: Range) -> list[bool]:
        """Which rows lie in a range, as the product decides it for images of the log."""
        mask = covered(rows, self.key, [reach])
        if mask is None:
            mask = inside(self.session, self.table, rows, [reach])
        return [bool(found) for found in mask]

    def content(self, rows: pa.Table) -> dict[bytes, int]:
        """A hash of each row by its key."""
        keys, hashes = self.encoded(rows), hash_rows(rows, rows.schema.names).tolist()
        return {keys[i]: hashes[i] for i in range(len(keys))}
