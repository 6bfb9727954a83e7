"""From which version on a lake table can be read: the cleaner removes replaced files, Delta its oldest log entries."""

import re
from pathlib import Path
from urllib.parse import unquote

import msgspec

from catchment.sink.delta.files import lake_file

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.(?:.*\.)?parquet")


class _Removed(msgspec.Struct):
    path: str


class _Entry(msgspec.Struct):
    """A line of a log entry, as far as it is looked at (Delta protocol: Actions)."""

    remove: _Removed | None = None


_decode = msgspec.json.Decoder(_Entry).decode


def oldest_version(directory: Path, newest: int, asked: int = 0) -> int:
    """A version from which on every one up to `newest` can be read; `asked` if that is one.

    Versions before it lack files or log entries; one or another of them may be readable still.
    """
    log = directory / "_delta_log"
    for version in range(newest, asked, -1):
        entry = log / f"{version:020d}.json"
        if not entry.exists():
            return min((c for c in _checkpoints(log) if c >= version), default=newest)
        with lake_file(entry):
            lines = entry.read_bytes().splitlines()
        removed = (action.remove.path for action in map(_decode, lines) if action.remove is not None)
        if not all((directory / unquote(path)).exists() for path in removed):
            return version
    return asked if _has_log(log, asked) else min(_checkpoints(log), default=newest)


def _has_log(log: Path, version: int) -> bool:
    """Whether Delta's log reaches back to a version, of which all later entries are there."""
    begins = [c for c in _checkpoints(log) if c <= version]
    first = max(begins) + 1 if begins else 0
    return all((log / f"{v:020d}.json").exists() for v in range(first, version + 1))


def _checkpoints(log: Path) -> list[int]:
    return [int(found[1]) for path in log.iterdir() if (found := _CHECKPOINT.fullmatch(path.name))]
