"""Secrets that are kept outside of the feed file, and may be others later: a file has them, or a command says them."""

from pathlib import Path

from pydantic import SecretStr

from catchment import world
from catchment.world.commands import said_by


class FromFile(SecretStr):
    """A secret that a file holds."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self.path = path

    def now(self, within: float) -> str:
        """What the file holds now; the text that was read first while it cannot be read."""
        try:
            return text_of(self.path)
        except ValueError:
            return self.get_secret_value()


class FromCommand(SecretStr):
    """A password that a command says. It is run when somebody logs in: a shard whose command fails keeps nobody else
    from beginning."""

    def __init__(self, command: tuple[str, ...]) -> None:
        super().__init__("")
        self._command = command
        self._said, self._said_at = "", float("-inf")

    def get_secret_value(self) -> str:
        """What it says now. Raises ValueError where it fails."""
        return self.now(0.0)

    def now(self, within: float) -> str:
        """What it says, or said so many seconds ago at most. Raises ValueError where it fails."""
        if world.steady_seconds() - self._said_at >= within:
            self._said, self._said_at = said_by(self._command), world.steady_seconds()
        return self._said


def text_of(path: Path) -> str:
    """A secret in a file, without the end of its line. Raises ValueError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as fault:
        raise ValueError(f"cannot read {path}: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"cannot read {path}: it is not UTF-8 text") from None
