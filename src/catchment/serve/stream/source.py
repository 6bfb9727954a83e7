"""Whose rows a stream has: the shards of one keyspace or several, named `keyspace/shard`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from catchment.config.feed import Feed, SourceConfig, Unusable
from catchment.config.file import load, source_section
from catchment.model.errors import ConfigError
from catchment.model.source import Endpoint

Given = str | Path | Mapping[str, Any] | SourceConfig | Feed
SEPARATOR = "/"


class ShardName(NamedTuple):
    """A shard within its keyspace."""

    keyspace: str
    shard: str

    @classmethod
    def parse(cls, name: str) -> "ShardName":
        """Of `keyspace/shard`."""
        keyspace, _, shard = name.partition(SEPARATOR)
        return cls(keyspace, shard)

    def __str__(self) -> str:
        return f"{self.keyspace}{SEPARATOR}{self.shard}"


@dataclass(frozen=True)
class Source:
    """The shards by `keyspace/shard`, with the passwords in clear. `skips`: a stream that begins leaves out tables that
    cannot be streamed, as all of its feed files say."""

    endpoints: Mapping[str, Endpoint]
    skips: bool = False

    def of(self, keyspace: str = "", shard: str = "") -> list[str]:
        """The shards of a keyspace, of all without one; or one of them."""
        names = [ShardName.parse(name) for name in self.endpoints]
        return [str(name) for name in names if keyspace in ("", name.keyspace) and shard in ("", name.shard)]


def source_of(given: Given | Sequence[Given]) -> Source:
    """The source that a caller names: a feed file, or a mapping as the section `source` of one. Several of these have a
    keyspace each. Raises ConfigError."""
    several = [given] if isinstance(given, str | Path | Mapping | SourceConfig | Feed) else list(given)
    if not several:
        raise ConfigError("stream: no source is given; name a feed file")
    endpoints: dict[str, Endpoint] = {}
    found = list(map(_read, several))
    for config, _ in found:
        for shard in config.shards:
            name = str(ShardName(config.keyspace, shard.name))
            if name in endpoints:
                raise ConfigError(f"stream: the shard {name} is given twice; name each keyspace once")
            endpoints[name] = replace(shard.endpoint(), shard=name)
    return Source(endpoints, skips=all(skips for _, skips in found))


def _read(given: Given) -> tuple[SourceConfig, bool]:
    """The shards, and whether a feed file has unusable tables skipped."""
    if isinstance(given, str | Path):
        given = load(given, secrets=("password",))
    if isinstance(given, Feed):
        return given.source, given.unusable is Unusable.SKIP
    return (given if isinstance(given, SourceConfig) else source_section(given)), False
