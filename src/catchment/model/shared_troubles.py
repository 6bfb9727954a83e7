"""Troubles of which each hits many things at once: it is told when it begins, and when the last of them is over it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass
class _Trouble(Generic[T]):
    """What a trouble hit and holds up still, and what is over it."""

    left: set[T]
    over: list[T] = field(default_factory=list)


class SharedTroubles(Generic[T]):
    """Those that last. A thing is in one trouble at a time. One call at a time."""

    def __init__(self) -> None:
        self._now: list[_Trouble[T]] = []

    def begin(self, things: Collection[T]) -> None:
        """One trouble has hit these; they are no longer in another one."""
        self._part(things)
        self._now.append(_Trouble(set(things)))

    def passed(self, over: Sequence[T], gone: Iterable[T] = ()) -> list[list[T]]:
        """These are over their troubles, and nothing is left of the `gone`: of each trouble that ends with that, the
        things that are over it."""
        for trouble in self._now:
            trouble.over += [thing for thing in over if thing in trouble.left]
        self._part([*over, *gone])
        ended = [trouble.over for trouble in self._now if not trouble.left and trouble.over]
        self._now = [trouble for trouble in self._now if trouble.left]
        return ended

    def _part(self, things: Iterable[T]) -> None:
        parting = set(things)
        for trouble in self._now:
            trouble.left -= parting
