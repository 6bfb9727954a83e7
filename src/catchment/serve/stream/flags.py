"""What a client may ask of a stream besides rows; the names are those of VStream's flags."""

import msgspec

from catchment.model.errors import ConfigError


class Flags(msgspec.Struct, frozen=True):
    """`minimize_skew`: hold back the shards that are ahead. `heartbeat_interval`: seconds without an event until a
    Heartbeat comes; 0: none. `stop_on_reshard`: end where the source has other shards than the vgtid.

    Raises ConfigError.
    """

    minimize_skew: bool = False
    heartbeat_interval: float = 0.0
    stop_on_reshard: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.heartbeat_interval <= 86_400:
            raise ConfigError(
                f"flags.heartbeat_interval: {self.heartbeat_interval} is no number of seconds from 0 to 86,400"
            )
