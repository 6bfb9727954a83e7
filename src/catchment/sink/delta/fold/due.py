"""When a table is to be folded (DESIGN 10): by what full reads cost more than those of a folded table."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from deltalake import DeltaTable

from catchment.model.epoch import Part
from catchment.sink.delta.commit import file_lists
from catchment.sink.delta.fold.rewrite import FileSize
from catchment.sink.delta.layout import EPOCH


class FoldLimits(msgspec.Struct, frozen=True):
    """A table is folded at the first limit reached.

    `share`: changes rows not yet folded, as a share of base rows. `files`: files of changes, or of a base scattered
    over small files. `age_s`: seconds since the oldest change was applied.
    """

    share: float = 0.05
    files: int = 200
    age_s: float = 600.0


class TableStats(msgspec.Struct, frozen=True):
    """Rows and files of both parts of a lake table. `oldest_s`: age of the oldest changes file, or 0. `small_files`:
    files of changes that may be gathered."""

    base_rows: int
    base_bytes: int
    base_files: int
    changes_rows: int
    changes_files: int
    oldest_s: float
    small_files: int = 0

    @property
    def unfolded_share(self) -> float:
        """Changes rows as a share of base rows; 1 when there is no base."""
        if self.base_rows == 0:
            return 1.0 if self.changes_rows else 0.0
        return self.changes_rows / self.base_rows


_SMALL_FILE_BYTES = 16 * 1024 * 1024
# A reader pays about 1 ms for each file of changes, however few rows it has (DuckDB 2.0).
SMALL_CHANGES_BYTES = 4 * 1024 * 1024
SMALL_CHANGES_FILES = 24


def table_stats(table: DeltaTable) -> TableStats:
    """Figures of a handle's version, from the log alone."""
    files = file_lists(table)
    base, changes = files[Part.BASE], files[Part.CHANGES]
    now_ms = time.time_ns() // 1_000_000
    return TableStats(
        base_rows=sum(f["num_records"] for f in base),
        base_bytes=sum(f["size_bytes"] for f in base),
        base_files=len(base),
        changes_rows=sum(f["num_records"] for f in changes),
        changes_files=len(changes),
        small_files=len(small_run(changes)),
        oldest_s=max((now_ms - f["modification_time"] for f in changes), default=0) / 1000,
    )


def small_run(changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The most small files of changes that follow one another in order of epoch.

    With a larger one in between, their net would span its epochs, and a fold had to take both at a time.
    """
    best: list[dict[str, Any]] = []
    run: list[dict[str, Any]] = []
    for file in sorted(changes, key=lambda f: (f[f"min.{EPOCH}"], f[f"max.{EPOCH}"])):
        run = [*run, file] if file["size_bytes"] < SMALL_CHANGES_BYTES else []
        best = max(best, run, key=len)
    return best


def should_fold(stats: TableStats, limits: FoldLimits) -> bool:
    """Whether one of the limits is reached."""
    scattered = (
        stats.base_files >= limits.files
        and stats.base_bytes < stats.base_files * _SMALL_FILE_BYTES
        and FileSize().small(-(-stats.base_rows // stats.base_files), 0)
    )
    if stats.changes_rows == 0:
        return scattered
    return (
        scattered
        or stats.unfolded_share >= limits.share
        or stats.changes_files >= limits.files
        or stats.oldest_s >= limits.age_s
    )


def should_gather(stats: TableStats) -> bool:
    """Whether small files of changes are to be gathered, without touching the base."""
    return stats.small_files >= SMALL_CHANGES_FILES
