"""The state of one shard: where its log is read to, what is proven visible there, and how far its tables are copied.

It is one value everywhere: in a manifest, in a task, and in the offset of a stream.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import cast

import msgspec
from msgspec.structs import force_setattr, replace

from catchment.model.chunk import Bound, Chunk
from catchment.model.definition import Definition
from catchment.model.foreign_key import ForeignKey
from catchment.model.of_tables import Lasting, OfTables
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


class Copies(OfTables[Copy], what="copy"):
    """The copies of one shard. Where nothing was copied, the next epoch has the same object."""

    _of: frozenset[TableId] | None = None

    @cached_property
    def unfinished(self) -> "Copies":
        """Those of which rows are left to copy."""
        return Copies(copy for copy in self if not copy.done)

    @cached_property
    def idle(self) -> bool:
        """Whether no row is to be copied now."""
        return all(copy.paused for copy in self.unfinished)

    def are_of(self, tables: frozenset[TableId]) -> bool:
        """Whether they are copies of these tables; the answer for the same object is remembered."""
        if self._of is not tables and self.tables <= tables:
            self._of = tables
        return self._of is tables


class Definitions(Lasting[Definition], what="definition", of=Definition):
    """The definitions of one shard's tables."""


_NO_COPY = Copies()


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
        # Empty ones stay as they are: a record leaves them out.
        if self.copies and not isinstance(self.copies, Copies):
            force_setattr(self, "copies", Copies(self.copies))
        if self.definitions and not isinstance(self.definitions, Definitions):
            force_setattr(self, "definitions", Definitions(self.definitions))

    @property
    def known(self) -> Copies:
        """The copies, with what follows from them."""
        return cast(Copies, self.copies) if self.copies else _NO_COPY

    @property
    def copying(self) -> Mapping[TableId, Copy]:
        """The tables of which rows are left to copy."""
        return self.known.unfinished.by_table

    @property
    def unfinished(self) -> "ShardState":
        """The same without the copies that are done, of which a task need not know: with many tables it is small."""
        return replace(self, copies=self.known.unfinished or ())

    @property
    def copied(self) -> bool:
        """Whether no row is left to copy."""
        return not self.known.unfinished

    @property
    def idle(self) -> bool:
        """Whether no row is to be copied now: all are, or their copies are paused."""
        return self.known.idle

    def without(self, tables: Collection[TableId]) -> "ShardState":
        """The same without these tables; the same object where it has none of them."""
        if self.known.tables.isdisjoint(tables):
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
