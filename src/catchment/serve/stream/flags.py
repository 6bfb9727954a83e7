"""What a client may ask of a stream besides rows."""

from enum import Enum

import msgspec

from catchment.model.errors import ConfigError


class AddedShards(Enum):
    """What becomes of shards that the source has got since the vgtid was given."""

    REFUSE = "refuse"
    COPY = "copy"
    IGNORE = "ignore"


class Flags(msgspec.Struct, frozen=True):
    """`minimize_skew`: hold back the shards that are ahead. `heartbeat_interval`: seconds without an event until a
    Heartbeat comes; 0: none. `added_shards`: whether a stream that goes on where the source has got more shards is
    refused, begins these with a copy, or leaves them out.

    Raises ConfigError.
    """

    minimize_skew: bool = False
    heartbeat_interval: float = 0.0
    added_shards: AddedShards = AddedShards.REFUSE

    def __post_init__(self) -> None:
        if not 0 <= self.heartbeat_interval <= 86_400:
            raise ConfigError(
                f"flags.heartbeat_interval: {self.heartbeat_interval} is no number of seconds from 0 to 86,400"
            )
