"""The GTIDs that MySQL gives to groups, and sets of them (MySQL manual: GTID Format and Storage).

A GTID is `uuid:number`, since 8.3 also `uuid:tag:number`. A set is written like
`3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7:seed:1-3`: tags stand behind the plain numbers of their server.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

_HEX = re.compile(r"[0-9a-f]{32}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"(\d{1,19})(?:-(\d{1,19}))?")
NUMBER_MAX = 2**63 - 2

Interval = tuple[int, int]


class UuidGtid(msgspec.Struct, frozen=True):
    """One GTID of MySQL; `tag` is empty for a plain one."""

    uuid: str
    tag: str
    number: int

    def __str__(self) -> str:
        return ":".join(filter(None, (self.uuid, self.tag, str(self.number))))


class Origin(msgspec.Struct, frozen=True):
    """The numbers of one uuid and tag: closed intervals, sorted, neither touching nor overlapping."""

    uuid: str
    tag: str
    intervals: tuple[Interval, ...]


class GtidSet(msgspec.Struct, frozen=True, tag="mysql"):
    """A set of MySQL GTIDs: where a log stands. Equal sets are equal values."""

    origins: tuple[Origin, ...] = ()

    def __post_init__(self) -> None:
        if self.origins != _normal((o.uuid, o.tag, i) for o in self.origins for i in o.intervals):
            raise ValueError(f"the origins of a GTID set must be sorted and their intervals apart: {self}")

    @classmethod
    def of(cls, intervals: Iterable[tuple[str, str, Interval]]) -> "GtidSet":
        """The set of `(uuid, tag, (first, last))`, in any order, also overlapping; raises ValueError."""
        return cls(_normal(intervals))

    @classmethod
    def parse(cls, text: str) -> "GtidSet":
        """Read what `@@gtid_executed` says, white space included; raises ValueError on anything else."""
        return cls.of(
            entry for part in text.split(",") if part.strip() for entry in _entries("".join(part.split()))
        )

    def __contains__(self, gtid: UuidGtid) -> bool:
        return any(
            first <= gtid.number <= last
            for origin in self.origins
            if (origin.uuid, origin.tag) == (gtid.uuid, gtid.tag)
            for first, last in origin.intervals
        )

    def includes(self, other: "GtidSet") -> bool:
        """True when every GTID of the other is in this one."""
        return self.union(other) == self

    def meets(self, other: "GtidSet") -> bool:
        """True when some GTID is in both."""
        theirs = {(o.uuid, o.tag): o.intervals for o in other.origins}
        return any(
            first <= b and a <= last
            for origin in self.origins
            for first, last in origin.intervals
            for a, b in theirs.get((origin.uuid, origin.tag), ())
        )

    def union(self, other: "GtidSet") -> "GtidSet":
        """The GTIDs of both."""
        return GtidSet.of((o.uuid, o.tag, i) for o in (*self.origins, *other.origins) for i in o.intervals)

    def __str__(self) -> str:
        parts: dict[str, list[str]] = {}
        for origin in self.origins:
            numbers = [str(a) if a == b else f"{a}-{b}" for a, b in origin.intervals]
            parts.setdefault(origin.uuid, []).extend([origin.tag, *numbers] if origin.tag else numbers)
        return ",".join(":".join([uuid, *numbers]) for uuid, numbers in parts.items())


def uuid_text(digits: str) -> str:
    """A uuid as MySQL writes it, from 32 hexadecimal digits; raises ValueError."""
    if _HEX.fullmatch(digits) is None:
        raise ValueError(f"not a uuid: {digits!r}")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _entries(part: str) -> Iterator[tuple[str, str, Interval]]:
    head, *rest = part.lower().split(":")
    uuid, tag = uuid_text(head.replace("-", "")), ""
    for word in rest:
        match = _INTERVAL.fullmatch(word)
        if match is not None:
            yield uuid, tag, (int(match[1]), int(match[2] or match[1]))
        elif _TAG.fullmatch(word):
            tag = word
        else:
            raise ValueError(f"not a GTID set of MySQL: {part!r}")


def _normal(intervals: Iterable[tuple[str, str, Interval]]) -> tuple[Origin, ...]:
    """Sorted, merged where intervals touch or overlap."""
    merged: dict[tuple[str, str], list[Interval]] = {}
    for uuid, tag, (first, last) in sorted(intervals):
        if not 1 <= first <= last <= NUMBER_MAX:
            raise ValueError(f"not an interval of GTIDs: {first}-{last}")
        known = merged.setdefault((uuid, tag), [])
        if known and first <= known[-1][1] + 1:
            known[-1] = (known[-1][0], max(known[-1][1], last))
        else:
            known.append((first, last))
    return tuple(Origin(uuid, tag, tuple(found)) for (uuid, tag), found in merged.items())
