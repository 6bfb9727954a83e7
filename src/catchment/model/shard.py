"""The state of one shard: where its log is read to, what is proven visible there, and how far its tables are copied.

It is one value everywhere: in a manifest, in a task, and in the offset of a stream.
"""

from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import replace

from catchment.model.chunk import Bound, Chunk
from catchment.model.definition import Definition
from catchment.model.foreign_key import ForeignKey
from catchment.model.position import LogOffset, Position
from catchment.model.table import TableId


class Copy(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much of a table is copied from a shard, as of a cut.

    Rows with `key <= copied` are delivered and follow the log. So do rows with `key > born_after`, the largest
    key when the copy began: later rows come from the log alone. Both None: nothing copied, no upper limit. `paused`: no
    chunk is read until somebody orders it.
    """

    table: TableId
    copied: Bound | None = None
    born_after: Bound | None = None
    done: bool = False
    rows: int = 0
    rows_expected: int = 0
    paused: bool = False

    def advanced(self, chunks: Sequence[Chunk], rows: int = 0) -> "Copy":
        """The copy once these chunks of so many rows, which follow one another, are delivered."""
        if not chunks:
            return self
        last = chunks[-1]
        return replace(
            self,
            copied=last.hi if last.hi is not None else self.copied,
            done=last.last,
            rows=self.rows + rows,
        )


class ShardState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A shard as of a cut: a verified position, what is proven sealed there, and a copy for each table that it has.

    `definitions`: of its tables at the position, where the log does not describe itself. `keys`: the foreign keys
    there whose children follow their parents; None: nobody has asked yet.

    Raises ValueError where a table comes twice.
    """

    position: Position
    sealed: LogOffset | None = None
    copies: tuple[Copy, ...] = ()
    definitions: tuple[Definition, ...] = ()
    keys: tuple[ForeignKey, ...] | None = None

    def __post_init__(self) -> None:
        _must_differ("copy", self.copies)
        _must_differ("definition", self.definitions)

    @property
    def copying(self) -> dict[TableId, Copy]:
        """The tables of which rows are left to copy."""
        return {copy.table: copy for copy in self.copies if not copy.done}

    @property
    def unfinished(self) -> "ShardState":
        """The same without the copies that are done, of which a task need not know: with many tables it is small."""
        return replace(self, copies=tuple(self.copying.values()))

    @property
    def copied(self) -> bool:
        """Whether no row is left to copy."""
        return all(copy.done for copy in self.copies)

    @property
    def idle(self) -> bool:
        """Whether no row is to be copied now: all are, or their copies are paused."""
        return all(copy.done or copy.paused for copy in self.copies)

    def without(self, tables: Collection[TableId]) -> "ShardState":
        """The same without these tables; the same object where it has none of them."""
        if not any(copy.table in tables for copy in self.copies):
            return self
        copies = tuple(copy for copy in self.copies if copy.table not in tables)
        definitions = tuple(one for one in self.definitions if one.table not in tables)
        keys = self.keys and tuple(key for key in self.keys if key.child not in tables)
        return replace(self, copies=copies, definitions=definitions, keys=keys)

    @property
    def floor(self) -> LogOffset:
        """What is proven sealed, where chunks are read. Raises ValueError where nothing is: then there are none."""
        if self.sealed is None:
            raise ValueError(f"nothing is proven sealed up to {self.position.at}")
        return self.sealed


def _must_differ(what: str, parts: Sequence[Copy] | Sequence[Definition]) -> None:
    if len({part.table for part in parts}) != len(parts):
        tables = [part.table for part in parts]
        twice = next(table for table in tables if tables.count(table) > 1)
        raise ValueError(f"more than one {what} of {twice}")
