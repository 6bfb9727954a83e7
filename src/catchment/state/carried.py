"""The feed file's shards and `tables` beside those that a feed carries, when a run or a verification begins."""

import logging
import shlex
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from catchment.config import Feed, NewTables, takes
from catchment.model.epoch import Manifest, Outside
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import NEW_FEED, ConfigError, SinkError
from catchment.model.log_fields import about
from catchment.model.named import by_cause, listed, tables_named
from catchment.model.table import TableId
from catchment.model.treatment import Mode

_log = logging.getLogger(__name__)
_DROPPED = "it was dropped"


def must_name_shards(shards: Collection[str], manifest: Manifest) -> None:
    """Raise SinkError when the feed file names other shards than the lake holds."""
    if set(shards) != set(manifest.cut.shards):
        raise SinkError(
            f"the feed file names the shards {', '.join(sorted(shards))}, the lake holds "
            f"{', '.join(sorted(manifest.cut.shards))}; shards cannot be "
            f"added to or taken from a feed yet: start {NEW_FEED}"
        )


def leaving(rules: Sequence[str], manifest: Manifest, leave: Collection[TableId]) -> list[TableId]:
    """The tables that leave the feed: carried, taken by the rules no longer, and named by `leave`.

    Raises ConfigError when one of these three does not hold while the others do, and when no table would stay.
    Tables of `leave` that left before are no fault.
    """
    carried = manifest.tables
    gone = sorted(table for table in carried if not takes(rules, table))
    if carried and len(gone) == len(carried):
        raise ConfigError(
            f"tables: takes none of the tables that the feed carries ({listed(gone)}), and a feed cannot be without "
            f"one; take one of them, or start {NEW_FEED} for others; the lake stays readable as of epoch "
            f"{epoch_text(manifest.epoch)}"
        )
    for table in sorted(set(leave) - set(gone)):
        if table in carried:
            raise ConfigError(f'--leave {table}: `tables` takes it; add "!{table}" there')
        if table not in {outside.table for outside in manifest.outside}:
            raise ConfigError(
                f"--leave {table}: the feed does not carry it; it carries {listed(sorted(carried))}"
            )
    unasked = [table for table in gone if table not in leave]
    if unasked:
        one = len(unasked) == 1
        flags = " ".join(f"--leave {shlex.quote(str(table))}" for table in unasked)
        raise ConfigError(
            f"tables: {', '.join(map(str, unasked))} no longer {'matches' if one else 'match'}, but the feed carries "
            f"{'it' if one else 'them'}; correct `tables`, or let {'it' if one else 'them'} go with `{flags}` "
            f"(`catchment run` or `catchment apply`, once): the lake "
            f"{'table stays' if one else 'tables stay'} as of epoch {epoch_text(manifest.epoch)}"
        )
    return gone


def without(manifest: Manifest, gone: Collection[TableId], epoch: int, *, dropped: bool = False) -> Manifest:
    """An epoch that ends where `manifest` does, without the tables that leave, which is logged. `dropped`: no shard
    has them any more."""
    for epoch_kept, tables in by_cause(
        (table, epoch_text(_last(manifest, table))) for table in sorted(gone)
    ).items():
        went = (
            f"{tables_named(tables, some='were', one='was')} dropped on every shard"
            if dropped
            else f"{tables_named(tables, some='have', one='has')} left the feed"
        )
        _log.warning("%s; the lake keeps the rows of epoch %s", went, epoch_kept, extra=about(tables=tables))
    mirrored = gone if dropped else {one.table for one in manifest.shapes if one.mode is Mode.MIRROR}
    reason = _DROPPED if dropped else ""
    left = (Outside(table, _last(manifest, table), reason, keeps=table not in mirrored) for table in gone)
    return replace(manifest.repeated(epoch).without(gone), outside=(*manifest.outside, *left))


def _last(manifest: Manifest, table: TableId) -> int:
    """The last epoch at which a table is exact."""
    stale = manifest.stale_since(table)
    return manifest.epoch if stale is None else stale.epoch


def tell_uncarried(feed: Feed, manifest: Manifest, present: Collection[TableId]) -> None:
    """Log what `uncarried` says."""
    for line in uncarried(feed, manifest, present):
        _log.warning("%s", line)


def uncarried(feed: Feed, manifest: Manifest, present: Collection[TableId]) -> list[str]:
    """The tables `present` on the shards that the rules take and the feed does not carry, in a line for each reason.
    The feed left them out, or they left it and cannot enter again, or they came later, or a schema change made them.
    """
    outside = {one.table: one for one in manifest.outside if not one.returns}
    known = {table: one for table, one in outside.items() if table in present and takes(feed.tables, table)}
    late = sorted(set(present) - manifest.tables - {one.table for one in manifest.outside})
    lines = [f"{_matching(known)} not carried: {listed(list(known.values()))}"] if known else []
    shadows = [table for table in late if not feed.enters(table)]
    late = [table for table in late if feed.enters(table)]
    if late:
        then = new_tables_then(late, carries=feed.new_tables is NewTables.CARRY)
        lines.append(f"{_matching(late)} not carried yet: {listed(late)}; {then}")
    if shadows:
        lines.append(
            f"left out, since schema changes make such tables for a while (`shadow_tables`): {listed(shadows)}"
        )
    return lines


def new_tables_then(tables: Collection[TableId], *, carries: bool) -> str:
    """What becomes of tables that came after the feed began. `carries`: as `new_tables` of the feed file says."""
    one = len(tables) == 1
    if carries:
        return f"{'it' if one else 'each'} joins the feed once every shard has it"
    return f"`new_tables: skip` leaves {'it' if one else 'them'} out"


def _matching(tables: Collection[object]) -> str:
    one = len(tables) == 1
    return f"{len(tables)} {'table matches' if one else 'tables match'} `tables` and {'is' if one else 'are'}"
