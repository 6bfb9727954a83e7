"""Another feed file for a feed that runs: what of it the run can go by, and what it cannot change. Pure.

The file goes to the run through the state store, so it goes without secrets and without what may hold some.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from catchment.config.faults import said
from catchment.config.feed import Feed, ShardConfig, SourceConfig
from catchment.config.outside import FromFile
from catchment.config.values import Unread
from catchment.config.written import settings, written
from catchment.model.errors import ConfigError

# Sections that a run can go by at once: it would begin with them, and reaches no other place by them.
_LIVE: Final = (
    "tables",
    "columns",
    "modes",
    "arrange",
    "epoch",
    "copy",
    "sink",
    "schema_change",
    "ddl",
    "new_tables",
    "shadow_tables",
    "verify",
)
# Of these, what stays as long as a run does.
_STAYS: Final = frozenset({"sink.kind", "sink.path", "sink.index", "copy.throttle.flag_file"})
# Of each shard the address, the user, the TLS files, the password's file and the replicas may change.
_SHARDS: Final = "source.shards"
_PASSWORD_FILE: Final = "].password.file"
# What may hold a secret. The run is not told of it.
_UNTOLD: Final = frozenset({"state", "notify", "spark"})


@dataclass(frozen=True, slots=True)
class Another:
    """The feed that the run would go by, the settings in which it differs, and those that only the next run takes."""

    feed: Feed
    changed: tuple[str, ...]
    kept_back: tuple[str, ...]


def told(feed: Feed) -> str:
    """What the run is told of a feed file. Of passwords it is told in which file they are."""
    found = {name: value for name, value in written(feed).items() if name not in _UNTOLD}
    for shard, values in zip(feed.source.shards, found["source"]["shards"], strict=True):
        if isinstance(shard.password, FromFile | Unread) and shard.password.path is not None:
            values["password"] = {"file": str(shard.password.path)}
    return msgspec.json.encode(found).decode()


def another(feed: Feed, text: str) -> Another:
    """What a run of `feed` would go by that is `told` this. Raises ConfigError for what no feed file says."""
    before = msgspec.json.decode(told(feed))
    after = _decoded(text)
    was, said_now = settings(before), settings(after)
    was, said_now = _with_shards(was, said_now), _with_shards(said_now, was)
    differing = sorted(name for name in was.keys() | said_now.keys() if was.get(name) != said_now.get(name))
    kept_back = tuple(name for name in differing if not _may_change(name, said_now))
    return Another(_with(feed, after), tuple(name for name in differing if name not in kept_back), kept_back)


def _decoded(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as fault:
        raise ConfigError(
            f"the order holds no feed file ({fault}); give it again with this version"
        ) from None


def _may_change(name: str, after: dict[str, Any]) -> bool:
    if name.startswith(f"{_SHARDS}["):
        # Of a password that is no longer in a file the run is not told.
        return not name.endswith(_PASSWORD_FILE) or name in after
    return name.partition(".")[0] in _LIVE and name not in _STAYS


def _with_shards(mine: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Settings, of which each of a shard has its own path, as `source.shards[-80].host`, if both name the same
    shards."""
    try:
        shards = mine[_SHARDS]
        if {one["name"] for one in shards} != {one["name"] for one in other[_SHARDS]}:
            return mine
        found = {name: value for name, value in mine.items() if name != _SHARDS}
        for one in shards:
            found |= settings(one, f"{_SHARDS}[{one['name']}]")
        return found
    except (KeyError, TypeError):
        return mine  # it is refused for what it is


def _source(mine: SourceConfig, after: dict[str, Any]) -> SourceConfig:
    """How the shards are reached now; which ones there are stays. A password that the run is not told of stays, too."""
    said_now = {one["name"]: one for one in after["source"]["shards"]}
    if {one.name for one in mine.shards} != said_now.keys():
        return mine
    shards = []
    for one in mine.shards:
        reached = ShardConfig.model_validate(said_now[one.name])
        if "password" not in said_now[one.name]:
            reached = reached.model_copy(update={"password": one.password})
        shards.append(reached)
    return SourceConfig(keyspace=mine.keyspace, shards=tuple(shards), sessions_max=mine.sessions_max)


def _with(feed: Feed, after: dict[str, Any]) -> Feed:
    """The feed with the live sections of `after`. What stays is put back into them."""
    values = {field.alias or name: getattr(feed, name) for name, field in Feed.model_fields.items()}
    for name in _LIVE:
        values.pop(name)
        if name in after:
            values[name] = after[name]
    mine, throttle = feed.sink, feed.copying.throttle
    stays = {"flag_file": throttle.flag_file, "http": throttle.http}
    try:
        values["source"] = _source(feed.source, after)
        values["sink"] = {**after["sink"], "kind": mine.kind, "path": mine.path, "index": mine.index}
        values["copy"] = {**after["copy"], "throttle": {**after["copy"]["throttle"], **stays}}
        return Feed.model_validate(values)
    except ValidationError as invalid:
        error = invalid.errors(include_url=False, include_input=False)[0]
        raise ConfigError(said(error)) from None
    except (KeyError, TypeError):
        raise ConfigError("the order holds no whole feed file; give it again with this version") from None
