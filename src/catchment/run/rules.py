"""The feed file's shards and `tables` beside those that a feed carries, when a run or a verification begins."""

import logging
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from catchment.config import selects
from catchment.model.epoch import Manifest
from catchment.model.errors import NEW_FEED, ConfigError, SinkError
from catchment.model.table import TableId
from catchment.run.doctor import unmatched_rules

_log = logging.getLogger(__name__)


def must_take(rules: Sequence[str], manifest: Manifest) -> None:
    """Raise ConfigError for rules of a new feed that take no table."""
    idle = unmatched_rules(rules, {shape.table for shape in manifest.shapes})
    if idle:
        raise ConfigError("\n".join(f"{f.found}: {f.risk}; {f.remedy}" for f in idle))


def must_name_shards(shards: Collection[str], manifest: Manifest) -> None:
    """Raise SinkError when the feed file names other shards than the lake holds."""
    if set(shards) != set(manifest.cut):
        raise SinkError(
            f"the feed file names the shards {', '.join(sorted(shards))}, the lake holds "
            f"{', '.join(sorted(manifest.cut))}; shards cannot be "
            f"added to or taken from a feed yet: start {NEW_FEED}"
        )


def still_taken(rules: Sequence[str], manifest: Manifest, present: Collection[TableId]) -> Manifest:
    """The manifest from which a feed goes on: without tables that the rules take no longer, which are told.

    Tables among those `present` on the shards that the rules take and the feed does not carry are told, too: to be
    exact, they would need a first cut of their own. Raises ConfigError when no table is left.
    """
    kept = {shape.table for shape in manifest.shapes if selects(rules, shape.table)}
    left_out = sorted({shape.table for shape in manifest.shapes} - kept)
    if not kept:
        raise ConfigError("tables: the rules take none of the tables that the feed carries; correct `tables`")
    for table in left_out:
        _log.warning(
            "%s is not taken by `tables` any more: the feed goes on without it, its lake table stays as of epoch %s",
            table,
            manifest.epoch,
        )
    for table in sorted(set(present) - kept):
        _log.warning(
            "%s is taken by `tables`, but the feed has begun without it and does not carry it; %s does",
            table,
            NEW_FEED,
        )
    if not left_out:
        return manifest
    return replace(
        manifest,
        shapes=tuple(shape for shape in manifest.shapes if shape.table in kept),
        progress=tuple(progress for progress in manifest.progress if progress.table in kept),
        definitions={
            shard: tuple(d for d in definitions if d.table in kept)
            for shard, definitions in manifest.definitions.items()
        },
    )
