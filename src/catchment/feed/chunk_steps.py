"""Where the chunks of a table begin and end: steps through its keys, sized by what earlier chunks taught."""

from dataclasses import dataclass
from itertools import pairwise

from catchment.epoch.work import CopiedChunk
from catchment.model.budget import UNLIMITED, Allowance
from catchment.model.chunk import Bound, Chunk, ChunkKey
from catchment.model.shard import Copy
from catchment.model.table import INTEGERS, ShardTable
from catchment.source.bounds import (
    is_ranged,
    key_after,
    newest_key,
    oldest_key,
    rows_between,
    table_size,
)
from catchment.source.session import Session

FIRST_ROWS = 50_000
ROWS_MIN = 500
# A group holds the rows of its chunks in memory.
CHUNK_BYTES_MAX = 64 << 20
# What a group is dealt at least, however long their SELECTs take.
CHUNKS_PER_GROUP = 3
SPACING_GROWTH_MAX = 8.0
SHRINK = 4
# Beyond some pages InnoDB doubles its estimate (btr_estimate_n_rows_in_range), so twice the rows is as good as wanted.
ESTIMATE_MAX = 3
# An estimate is at most half of all rows. So a step that is cut off there is asked for in parts.
PARTS = 8
# Parts of so many rows are doubled as well. A walk along the index through fewer rows costs little more than to ask.
PARTED_MIN = 50_000


@dataclass
class Pace:
    """What chunks of a table on a shard have taught: rows per SELECT and second, the distance of integer keys, and
    bytes per row. Before the first chunk it is what the server estimates.

    `table_rows`: the server's estimate of all rows. `ranged`: a SELECT reads the rows of its chunk alone. Else it reads
    the whole table, however small the chunk is, and its time says nothing of the rows to ask for.
    """

    rows: int = FIRST_ROWS
    rate: float = 0.0
    spacing: float = 1.0
    row_bytes: float = 0.0
    table_rows: int = 0
    known: bool = False
    ranged: bool = True

    def wanted(self) -> int:
        """Rows of the next chunk."""
        return max(int(min(self.rows, CHUNK_BYTES_MAX / max(self.row_bytes, 1.0))), 1)

    def of_group(self, seconds: float) -> int:
        """Rows that a group is dealt: what its SELECTs read in so many seconds, as whole chunks."""
        fit = min(self.rate * seconds, CHUNKS_PER_GROUP * CHUNK_BYTES_MAX / max(self.row_bytes, 1.0))
        return max(int(fit), CHUNKS_PER_GROUP * self.wanted())

    def learn(self, copied: CopiedChunk, seconds: float, rows_max: int) -> None:
        """Take what a chunk has taught; `seconds` are aimed for, `rows_max` is the limit."""
        rate = copied.rows / max(copied.seconds, 0.001)
        self.rate = (self.rate + rate) / 2
        least = self.rows // 2 if self.ranged else self.rows
        self.rows = min(max(int(rate * seconds), ROWS_MIN, least), self.rows * 2, rows_max)
        lo, hi = copied.chunk.lo, copied.chunk.hi
        if lo and hi and isinstance(lo[0], int) and isinstance(hi[0], int) and hi[0] > lo[0]:
            found = (hi[0] - lo[0]) / max(copied.rows, 1)
            self.spacing = min(max(found, 1e-6), self.spacing * SPACING_GROWTH_MAX)
        if copied.rows:
            self.row_bytes = max(copied.bytes / copied.rows, self.row_bytes / 2)

    def shrink(self) -> None:
        """Ask for fewer rows after a step or chunk that failed."""
        if not self.ranged:
            return
        self.rows = min(max(self.rows // SHRINK, ROWS_MIN), self.rows)

    def halve(self) -> None:
        """Ask for fewer rows after a group that was too large, below ROWS_MIN too. Ask for nearer keys as well: before
        the first chunk their spacing is a guess."""
        self.rows = max(self.rows // 2, 1)
        self.spacing = max(self.spacing / 2, 1e-6)


class Walk:
    """Steps through the keys of one table that are not copied yet."""

    def __init__(self, session: Session, shard: str, copy: Copy, key: ChunkKey, pace: Pace) -> None:
        self._session = session
        self.of = ShardTable(shard, copy.table)
        self._copy = copy
        self._key = key
        self.pace = pace
        pace.ranged = is_ranged(key)
        self._at = self._lo = copy.copied
        self._ended = False
        # Of several columns the first may say little: then the server expects too many rows in a step of it.
        self._arithmetic = key.ordered and key.columns[0].type.kind in INTEGERS
        self._end = copy.born_after
        self._unplanned = copy.rows_expected - copy.rows

    def step(self, allowance: Allowance = UNLIMITED) -> tuple[Chunk, int] | None:
        """The next chunk and the rows expected in it; None after the last one."""
        if self._ended:
            return None
        self._begin()
        rows = self.pace.wanted()
        # Where each chunk reads the whole table, smaller ones would cost the shard more.
        if self.pace.ranged:
            rows = int(min(rows, allowance.rows_of(self.pace.row_bytes)))
        hi = self._next_integer(rows) if self._arithmetic else self._key_after(rows)
        last = hi is None
        # Without `born_after` the last chunk has no upper bound: rows born meanwhile are in it.
        end = self._copy.born_after if last else hi
        # The first chunk has no lower bound: a row below the smallest key of now may have stood there at the
        # cut.
        chunk = Chunk(*self.of, self._lo, end, last)
        self._lo = self._at = hi
        self._ended = last
        # By the estimate a small table takes a small part of an epoch, so that hundreds of them fit in one.
        expected = min(rows, max(self._unplanned, 1)) if last else rows
        self._unplanned -= expected
        return chunk, expected

    def _begin(self) -> None:
        """Ask the server for its estimates, once for each table and run."""
        if self.pace.known:
            return
        size = table_size(self._session, self.of.table)
        self.pace.table_rows, self.pace.row_bytes = size.rows, size.row_bytes
        if self._arithmetic and self._has_ends() and self._end and self._at:
            span = int(self._end[0]) - int(self._at[0])
            self.pace.spacing = max(span / max(self._copy.rows_expected - self._copy.rows, 1), 1e-6)
        self.pace.known = True

    def _has_ends(self) -> bool:
        """Find where an integer key begins and ends; False for an empty table."""
        table = self.of.table
        if self._at is None:
            first = oldest_key(self._session, table, self._key)
            self._at = None if first is None else _further(first, -1)
        if self._at is not None and self._end is None:
            self._end = newest_key(self._session, table, self._key)
        return self._at is not None and self._end is not None

    def _next_integer(self, rows: int) -> Bound | None:
        """By arithmetic, where the server does not expect many more rows there than wanted."""
        if not self._has_ends() or self._at is None or self._end is None:
            return None
        hi = _further(self._at, max(int(rows * self.pace.spacing), 1))
        wanted = None if int(hi[0]) >= int(self._end[0]) else hi
        end = wanted or self._end
        found = self._estimate(self._at, end)
        if found is None and rows >= PARTED_MIN:
            found = self._estimate_in_parts(self._at, end)
        return self._key_after(rows) if found is None or found > ESTIMATE_MAX * rows else wanted

    def _estimate_in_parts(self, lo: Bound, hi: Bound) -> int | None:
        span = int(hi[0]) - int(lo[0])
        places = [lo, *(_further(lo, span * part // PARTS) for part in range(1, PARTS)), hi]
        found = 0
        for above, up_to in pairwise(places):
            part = self._estimate(above, up_to)
            if part is None:
                return None
            found += part
        return found

    def _estimate(self, lo: Bound, hi: Bound) -> int | None:
        """The server's estimate of the rows between two places; None where it is cut off, and says nothing."""
        found = rows_between(self._session, self.of.table, self._key, lo, hi)
        return found if 2 * found + 2 < self.pace.table_rows else None

    def _key_after(self, rows: int) -> Bound | None:
        return key_after(
            self._session,
            self.of.table,
            self._key,
            self._at,
            self._copy.born_after,
            rows,
        )


def _further(at: Bound, step: int) -> Bound:
    """A place so far behind another by its first column. No row need be there."""
    return (int(at[0]) + step, *at[1:])
