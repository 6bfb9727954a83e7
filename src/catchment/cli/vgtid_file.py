"""A file with the vgtid behind which all is told: `catchment tail` writes it, and begins again there."""

import os
from pathlib import Path

import click

from catchment.model.errors import ConfigError


class VGtidFile:
    """The file is whole at any time, whoever ends the process. Raises ConfigError, at once and later."""

    def __init__(self, path: Path) -> None:
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise ConfigError(f"--vgtid-file: {path} cannot be written; name a file in a directory that can")
        self._path = path
        self._draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")

    def put(self, text: str) -> None:
        """All events up to this vgtid are with the reader."""
        try:
            with self._draft.open("w") as file:
                click.echo(text, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._draft, self._path)
        except OSError as fault:
            self._draft.unlink(missing_ok=True)
            raise ConfigError(f"--vgtid-file: {self._path} cannot be written: {fault.strerror}") from None


def kept_vgtid(path: Path) -> str:
    """The vgtid of such a file. Raises ConfigError."""
    try:
        text = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is no text"
        raise ConfigError(
            f"--from: {path} cannot be read: {why}; the first time begin with --from copy or --from current"
        ) from None
    if not text:
        raise ConfigError(f"--from: {path} is empty; begin with --from copy or --from current")
    return text
