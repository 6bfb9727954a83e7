"""What a client asks for, within limits. A request is text of strangers: it is refused before it costs much."""

from typing import Final

from catchment.model.errors import ConfigError
from catchment.model.slow import Slow
from catchment.serve.hub.ask import Ask
from catchment.serve.rules.rule import Rule
from catchment.serve.server import stream_pb2 as pb
from catchment.serve.stream.flags import AddedShards, Flags

RULES_MAX: Final = 100
MATCH_CHARACTERS: Final = 1000
FILTER_CHARACTERS: Final = 16_384
HEARTBEAT_SECONDS_MIN: Final = 0.1
# What stock clients of gRPC take.
MESSAGE_BYTES: Final = 4 << 20

_SLOW: Final = {pb.SLOW_REREAD: Slow.REREAD, pb.SLOW_GAP: Slow.GAP, pb.SLOW_END: Slow.END}
_ADDED: Final = {
    pb.ADDED_SHARDS_UNSPECIFIED: AddedShards.REFUSE,
    pb.ADDED_SHARDS_COPY: AddedShards.COPY,
    pb.ADDED_SHARDS_IGNORE: AddedShards.IGNORE,
}


def ask_of(request: pb.StreamRequest) -> Ask:
    """The request as values. Raises ConfigError."""
    if len(request.rules) > RULES_MAX:
        raise ConfigError(
            f"rules: {len(request.rules)} are more than {RULES_MAX}; take globs, or several streams"
        )
    given = request.flags
    if 0 < given.heartbeat_interval < HEARTBEAT_SECONDS_MIN:
        raise ConfigError(
            f"flags.heartbeat_interval: at least {HEARTBEAT_SECONDS_MIN} seconds, or 0 for no heartbeats"
        )
    if request.slow not in (pb.SLOW_UNSPECIFIED, *_SLOW):
        raise ConfigError(f"slow: {request.slow} is none of its values")
    if given.added_shards not in _ADDED:
        raise ConfigError(f"flags.added_shards: {given.added_shards} is none of its values")
    flags = Flags(given.minimize_skew, given.heartbeat_interval, _ADDED[given.added_shards])
    return Ask(request.vgtid, tuple(map(_rule, request.rules)), flags, _SLOW.get(request.slow))


def message_bytes_of(request: pb.StreamRequest) -> int:
    """How large a message the client takes."""
    return request.message_bytes_max or MESSAGE_BYTES


def _rule(given: pb.Rule) -> Rule:
    for name, text, most in (
        ("match", given.match, MATCH_CHARACTERS),
        ("filter", given.filter, FILTER_CHARACTERS),
    ):
        if len(text) > most:
            raise ConfigError(f"rule for {given.match[:40]}: its {name} has more than {most:,} characters")
    return Rule(given.match, given.filter, given.of or 1, given.index)
