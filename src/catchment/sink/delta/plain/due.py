"""Which files of a table are to be joined or written again: small ones in tiers, large ones with many dead rows."""

import math
from collections.abc import Iterator, Sequence

import msgspec

from catchment.sink.delta.log.delta_log import LakeFile, Snapshot
from catchment.sink.delta.plain.versions_of_rows import may_be_open

# A join takes so many files of a tier, and makes one of the next: a row is written again at most once a tier.
FAN = 16
# From so many rows on a file is not joined with others any more, and rewritten when so many of its rows are dead.
LARGE_ROWS = 1 << 17
DEAD_SHARE = 0.3


class _Tier(msgspec.Struct, frozen=True):
    """Files that are alike: of one partition, of about the same number of rows."""

    partition: tuple[tuple[str, str | None], ...]
    ended: bool
    size: int


class FileSize(msgspec.Struct, frozen=True):
    """Up to what size files are joined: about so many bytes, or `LARGE_ROWS` where these are 0."""

    bytes: int = 0

    def is_small(self, file: LakeFile) -> bool:
        """Whether a file may be joined with others."""
        return _live_bytes(file) < self.bytes // 2 if self.bytes else file.live < LARGE_ROWS

    def is_worn(self, file: LakeFile) -> bool:
        """Whether a file that was large has many dead rows."""
        large = file.add.size >= self.bytes // 2 if self.bytes else file.rows >= LARGE_ROWS
        return large and file.live < (1 - DEAD_SHARE) * file.rows

    def full(self, tier: Sequence[LakeFile]) -> Sequence[LakeFile]:
        """The files of a tier that are to become one; none while they are too few."""
        if not self.bytes:
            return tier if len(tier) >= FAN else ()
        size = 0.0
        for count, file in enumerate(tier, 1):
            size += _live_bytes(file)
            if count == FAN or (count > 1 and size >= self.bytes):
                return tier[:count]
        return ()


BY_ROWS = FileSize()


def due(snapshot: Snapshot, size: FileSize = BY_ROWS) -> list[Sequence[LakeFile]]:
    """Which files are to become one: of each partition a full tier of small ones, and each large one with many dead
    rows. No file is named twice; there may be none."""
    files = snapshot.files.values()
    full = list(_full_tiers([file for file in files if size.is_small(file)], size))
    taken = {file.path for joined in full for file in joined}
    return [*full, *([file] for file in files if size.is_worn(file) and file.path not in taken)]


def _full_tiers(small: Sequence[LakeFile], size: FileSize) -> Iterator[Sequence[LakeFile]]:
    tiers: dict[_Tier, list[LakeFile]] = {}
    for file in small:
        tier = int(math.log(max(file.live, 1), FAN))
        partition = tuple(sorted(file.add.partition_values.items()))
        tiers.setdefault(_Tier(partition, not may_be_open(file), tier), []).append(file)
    found = set()
    for tier_of, files in sorted(tiers.items(), key=lambda one: (one[0].size, not one[0].ended)):
        if tier_of.partition not in found and (joined := size.full(files)):
            found.add(tier_of.partition)
            yield joined


def _live_bytes(file: LakeFile) -> float:
    """Bytes of a file without its dead rows, about."""
    return file.add.size * file.live / max(file.rows, 1)
