"""What nobody needs any more of a table's log. Pure.

All entries from a checkpoint on that is older than the readers' window stay, and of each kept version its entry and a
checkpoint. Delta's readers open such a version by its checkpoint; Spark looks for the entry, too.

Of the checkpoints those stay that somebody who is opening the table may have chosen. Of older ones there is one among
SPAN versions, so that an older version is opened by at most as many entries.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from catchment.sink.delta.log.actions import Line

SPAN = 500
# What a version may have in a log, of any writer that is known.
_OF_VERSION = re.compile(r"(\d{20})\.(json|crc|checkpoint\.parquet|checkpoint\.[0-9.a-f-]+\.(parquet|json))")
_CHECKPOINT = ".checkpoint.parquet"


def seconds_of(found: list[Line]) -> float | None:
    """When a commit was made, in seconds since 1970; None where it does not tell."""
    told = (line.commit_info.get("timestamp") for line in found if line.commit_info is not None)
    return next((stamp / 1000 for stamp in told if isinstance(stamp, int)), None)


def checkpoints_of(names: Iterable[str]) -> list[int]:
    """The versions that have a checkpoint, in order; `names`: those of a log's files."""
    return sorted(int(name[:20]) for name in names if name.endswith(_CHECKPOINT))


def floor_of(checkpoints: Sequence[int], made: Callable[[int], float], seconds: float, window: int) -> int:
    """The newest checkpoint of a version that was `made` before a time (seconds since 1970), and is not behind version
    `window`: entries before it are needed by kept versions alone. 0 where there is none."""
    begins = [version for version in checkpoints if version <= window]
    place = bisect_right(begins, seconds, key=made)
    return begins[place - 1] if place else 0


def needless(names: Collection[str], floor: int, opened: int, kept: Collection[int]) -> list[str]:
    """Which files of a log nobody needs: what it has of versions before `floor` that are not `kept`, and checkpoints
    between which the log is read on. `opened`: whoever is opening the table began at this version or a later one."""
    between = set(_between([v for v in checkpoints_of(names) if v >= floor], opened))
    found = []
    for name in names:
        told = _OF_VERSION.fullmatch(name)
        version = -1 if told is None else int(told[1])
        if version < 0 or version in kept:
            continue
        if version < floor or (version in between and name.endswith(_CHECKPOINT)):
            found.append(name)
    return found


def _between(checkpoints: Sequence[int], opened: int) -> Iterator[int]:
    """Of these checkpoints those that have a successor from which all begin, and an earlier one within their span."""
    last: int | None = None
    for version, successor in pairwise(checkpoints):
        if successor <= opened and last is not None and version // SPAN == last // SPAN:
            yield version
        else:
            last = version
