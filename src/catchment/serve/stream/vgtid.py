"""Where a stream stands, and where one begins: what a client gives, and what it gets.

A stream gives its own cut as JSON, opaque and versioned. A client may begin with that, or name positions as seed 004
has them. Each is for one shard, for those of a keyspace, or for all: a GTID, `current`, or empty for a copy.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from catchment.model.cut import Cut
from catchment.model.errors import ConfigError
from catchment.model.position import reaches
from catchment.model.version import __version__
from catchment.serve.stream.source import Source

VERSION: Final = 1
CURRENT: Final = "current"
COPY: Final = ""
BYTES_MAX: Final = 64 << 20
# How Vitess writes the flavor in front of a position.
_FLAVORS = ("MariaDB/", "MySQL56/", "MySQL/")


class StreamCut(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything up to `cut` has been told. Its copies say which tables are followed, and how far they are copied.

    `unshown`: shards of which no tick showed that position; it is the end of some group before one. Raises ValueError
    for a shard of which nothing is proven sealed. `left_out`: shards of the source that the stream is not to have.
    """

    cut: Cut
    unshown: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    version: int = VERSION

    def __post_init__(self) -> None:
        for shard, state in self.cut.shards.items():
            if state.sealed is None:
                raise ValueError(f"shard {shard}: no state of a stream, which has a floor")


class Start(msgspec.Struct, frozen=True):
    """Where one or several shards begin. `keyspace` and `shard` empty: all of them. `gtid`: GTIDs as their server
    writes them, `current`, or empty: rows that exist come first. `tables`: copy these alone, and follow the others from
    now on; none: copy all."""

    keyspace: str = ""
    shard: str = ""
    gtid: str = COPY
    tables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Starts:
    """Where each shard begins, by its name."""

    shards: Mapping[str, Start]


# Built once: msgspec 0.22 crashes the process where two threads build one at once.
_CUTS = msgspec.json.Decoder(StreamCut)
_STARTS = msgspec.json.Decoder(Start)

Given = str | Mapping[str, Any] | Start | Sequence[Start | Mapping[str, Any]] | None


def written(stands: StreamCut) -> str:
    """What a client keeps."""
    return msgspec.json.encode(stands).decode()


def given_before(text: str) -> StreamCut:
    """The cut of a text that `written` made, and that nobody else had meanwhile."""
    return _CUTS.decode(text)


def is_later(one: StreamCut, other: StreamCut) -> bool:
    """Whether a stream comes to one cut after the other one: its number is greater, and no shard stands before it, as
    far as base names of logs are the same. It may have got more shards meanwhile."""
    here, there = one.cut.positions, other.cut.positions
    return one.cut.epoch > other.cut.epoch and all(
        shard in here and (here[shard].at.base != position.at.base or reaches(here[shard].at, position.at))
        for shard, position in there.items()
    )


def read(given: Given, source: Source) -> StreamCut | Starts:
    """Where a stream of these shards begins. Raises ConfigError."""
    if given is None or given in (COPY, CURRENT):
        return _starts([Start(gtid=given or COPY)], source)
    if isinstance(given, Start):
        return _starts([given], source)
    if isinstance(given, str):
        if len(given) > BYTES_MAX:
            raise ConfigError(f"vgtid: it has more than {BYTES_MAX:,} characters, which no stream gives")
        return _read_text(given, source)
    if isinstance(given, Mapping):
        return _read_value(dict(given), source)
    return _starts([_start(one) for one in given], source)


def _read_text(text: str, source: Source) -> StreamCut | Starts:
    try:
        value = json.loads(text)
    except ValueError:
        # One position, for the only shard there is.
        return _starts([Start(gtid=text)], source)
    if isinstance(value, dict):
        return _read_value(value, source)
    if isinstance(value, list):
        return _starts([_start(one) for one in value], source)
    raise ConfigError(f"vgtid: {text[:40]!r} is neither what a stream gave nor a list of positions")


def _read_value(value: dict[str, Any], source: Source) -> StreamCut | Starts:
    if "cut" not in value:
        listed = value.get("shard_gtids", value.get("shardGtids"))
        return _starts([_start(one) for one in (listed if isinstance(listed, list) else [value])], source)
    version = value.get("version", VERSION)
    if version != VERSION:
        raise ConfigError(
            f"vgtid: it has version {version}, this Catchment ({__version__}) reads version {VERSION}: use the one "
            "that gave it, or a later one"
        )
    try:
        stands = _CUTS.decode(msgspec.json.encode(value))
    except (msgspec.ValidationError, ValueError) as fault:
        raise ConfigError(f"vgtid: not one that a stream gave: {fault}") from None
    strange = sorted(stands.cut.shards.keys() - source.endpoints.keys())
    if strange:
        raise ConfigError(
            f"vgtid: it stands for the shards {', '.join(sorted(stands.cut.shards))}, and the source has "
            f"{', '.join(sorted(source.endpoints))}"
        )
    return stands


def _start(given: Start | Mapping[str, Any]) -> Start:
    if isinstance(given, Start):
        return given
    try:
        named = {key.lower().replace("_", ""): value for key, value in given.items()}
        tables = named.pop("tables", named.pop("tablepks", ()))
        names = [one["table_name"] if isinstance(one, Mapping) else one for one in tables]
        found = _STARTS.decode(msgspec.json.encode({**named, "tables": names}))
    except (AttributeError, KeyError, TypeError, msgspec.ValidationError) as fault:
        raise ConfigError(
            f"vgtid: {str(given)[:100]} is no position; it has keyspace, shard, gtid and tables ({fault})"
        ) from None
    unknown = sorted(set(named) - set(Start.__struct_fields__))
    if unknown:
        raise ConfigError(
            f"vgtid: a position has no {', '.join(unknown)}; it has keyspace, shard, gtid and tables"
        )
    return found


def _starts(given: Sequence[Start], source: Source) -> Starts:
    found: dict[str, Start] = {}
    for start in given:
        shards = source.of(start.keyspace, start.shard)
        if not shards:
            raise ConfigError(
                f"vgtid: the source has no shard {start.shard or 'any'} of keyspace {start.keyspace or 'any'}; it has "
                + ", ".join(sorted(source.endpoints))
            )
        if start.tables and start.gtid != COPY:
            raise ConfigError(
                f"vgtid: {', '.join(start.tables)} cannot be copied from {start.gtid}: leave gtid empty"
            )
        twice = sorted(found.keys() & set(shards))
        if twice:
            raise ConfigError(f"vgtid: {', '.join(twice)} has more than one position")
        found |= dict.fromkeys(shards, msgspec.structs.replace(start, gtid=_plain(start.gtid)))
    return Starts(found)


def _plain(gtid: str) -> str:
    """Without the flavor that Vitess writes in front."""
    return gtid.partition("/")[2] if gtid.startswith(_FLAVORS) else gtid
