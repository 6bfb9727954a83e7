"""Whose rows a stream has: the shards of one keyspace or several, named `keyspace/shard`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from catchment.config.feed import SourceConfig
from catchment.config.file import load, source_section
from catchment.model.errors import ConfigError
from catchment.model.source import Endpoint

Given = str | Path | Mapping[str, Any] | SourceConfig
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
    """The shards by `keyspace/shard`, with the passwords in clear."""

    endpoints: Mapping[str, Endpoint]

    def of(self, keyspace: str = "", shard: str = "") -> list[str]:
        """The shards of a keyspace, of all without one; or one of them."""
        names = [ShardName.parse(name) for name in self.endpoints]
        return [str(name) for name in names if keyspace in ("", name.keyspace) and shard in ("", name.shard)]


def source_of(given: Given | Sequence[Given]) -> Source:
    """The source that a caller names: a feed file, or a mapping as the section `source` of one. Several of these have a
    keyspace each. Raises ConfigError."""
    several = [given] if isinstance(given, str | Path | Mapping | SourceConfig) else list(given)
    if not several:
        raise ConfigError("stream: no source is given; name a feed file")
    endpoints: dict[str, Endpoint] = {}
    for config in map(_read, several):
        for shard in config.shards:
            name = str(ShardName(config.keyspace, shard.name))
            if name in endpoints:
                raise ConfigError(f"stream: the shard {name} is given twice; name each keyspace once")
            endpoints[name] = replace(shard.endpoint(), shard=name)
    return Source(endpoints)


def _read(given: Given) -> SourceConfig:
    if isinstance(given, SourceConfig):
        return given
    if isinstance(given, str | Path):
        return load(given, secrets=("password",)).source
    return source_section(given)
