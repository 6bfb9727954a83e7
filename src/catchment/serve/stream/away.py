"""Shards that cannot be read: they are waited for, up to a limit."""

from dataclasses import dataclass, field

from catchment import world
from catchment.model.errors import CatchmentError, Retry

AWAY_SECONDS_MAX = 600.0
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.2, 5.0


@dataclass
class Away:
    """How long each shard has not been read."""

    since: dict[str, float] = field(default_factory=dict)
    pauses: int = 0

    def met(self, shard: str) -> None:
        self.since.pop(shard, None)

    def missed(self, shard: str, error: CatchmentError) -> None:
        """Raise the error where the shard has been away for too long, or waiting does not help."""
        since = self.since.setdefault(shard, world.steady_seconds())
        if error.retry is Retry.NEVER or world.steady_seconds() - since > AWAY_SECONDS_MAX:
            raise error

    def pause(self, *, gained: bool) -> None:
        """Wait a little longer each time that no shard could be read."""
        self.pauses = 0 if gained else self.pauses + 1
        if self.pauses:
            world.sleep(min(_PAUSE_SECONDS * 2**self.pauses, _PAUSE_SECONDS_MAX))
