"""Values of which each is of one table. A feed has thousands, and most epochs change none: then the next epoch has the
same object, and what was found of it once holds."""

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol, Self, TypeVar

import msgspec

from catchment.model.table import TableId

# Of the shapes and definitions that the newest tasks of a process had: 2,000 tables take some 20 MB.
_MET_MAX = 8

_V = TypeVar("_V")


class OfTable(Protocol):
    """A value of one table."""

    @property
    def table(self) -> TableId: ...


_T_co = TypeVar("_T_co", bound=OfTable, covariant=True)


class OfTables(tuple[_T_co, ...]):
    """A tuple of such values, which is written and compared as any tuple is.

    `what`: what each of them is, for an error. Raises ValueError where a table comes twice.
    """

    what: ClassVar[str] = "value"

    def __init_subclass__(cls, *, what: str = "value") -> None:
        cls.what = what

    def __new__(cls, values: Iterable[_T_co] = ()) -> Self:
        found = super().__new__(cls, values)
        if len(found.by_table) != len(found):
            tables = [one.table for one in found]
            twice = next(table for table in tables if tables.count(table) > 1)
            raise ValueError(f"more than one {cls.what} of {twice}")
        return found

    @cached_property
    def by_table(self) -> Mapping[TableId, _T_co]:
        """The values by their tables."""
        return {one.table: one for one in self}

    @cached_property
    def tables(self) -> frozenset[TableId]:
        """Their tables."""
        return frozenset(self.by_table)

    def replaced(self, by: Mapping[TableId, _T_co | None]) -> Self:
        """The same with other values of some of its tables (None: without one); the same object where none differs."""
        known = self.by_table
        if all(one == known.get(table) for table, one in by.items()):
            return self
        after = (by.get(one.table, one) for one in self)
        return type(self)(one for one in after if one is not None)

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Any, ...]]]:
        """To another process go the values alone."""
        return type(self), (tuple(self),)


class Lasting(OfTables[_T_co]):
    """Such values, of which every task of every epoch has the same: thousands of tables with all their columns.

    They go to another process in a form that is made once, and are made of it there once for all tasks that bring it.
    """

    _decoder: ClassVar[msgspec.msgpack.Decoder[Any]]

    def __init_subclass__(cls, *, what: str = "value", of: type | None = None) -> None:
        super().__init_subclass__(what=what)
        # Built while one thread is there: msgspec 0.22 crashes the process where two threads build a decoder at once.
        cls._decoder = msgspec.msgpack.Decoder(tuple[of, ...] if of is not None else tuple)  # type: ignore[valid-type]

    @cached_property
    def packed(self) -> bytes:
        """All of them for another process."""
        # Tables are much alike: 4.5 MB of 2,000 become some 100 KB.
        return zlib.compress(msgspec.msgpack.encode(tuple(self)), 1)

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        """The values that `packed` was made of."""
        return cls(cls._decoder.decode(zlib.decompress(packed)))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _met, (type(self), self.packed)


@lru_cache(_MET_MAX)
def _met(kind: type[Lasting[Any]], packed: bytes) -> Lasting[Any]:
    found = kind.unpacked(packed)
    found.__dict__["packed"] = packed
    return found


class Lazily(Mapping[TableId, _V]):
    """What `find` gives of each of `tables`, found when it is asked for and kept."""

    def __init__(self, tables: Collection[TableId], find: Callable[[TableId], _V]) -> None:
        self._tables = tables
        self._find = find
        self._found: dict[TableId, _V] = {}

    def __getitem__(self, table: TableId) -> _V:
        if table not in self._found:
            if table not in self._tables:
                raise KeyError(table)
            self._found[table] = self._find(table)
        return self._found[table]

    def __contains__(self, table: object) -> bool:
        return table in self._tables

    def __iter__(self) -> Iterator[TableId]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)
