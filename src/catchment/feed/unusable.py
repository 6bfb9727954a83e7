"""Chosen tables that cannot be carried. A feed begins without them, or refuses and says of all of them what to write.

A table that cannot be carried on one shard is not carried at all: its rows of the other shards alone are no copy.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from catchment.config import Feed, Unusable
from catchment.config.table_patterns import exclusion
from catchment.doctor.finding import on_shards
from catchment.model.epoch import Outside
from catchment.model.errors import Unsupported
from catchment.model.table import TableId
from catchment.schema.foreign_keys import kept_as_they_are
from catchment.source.foreign_keys import REMEDY
from catchment.source.origin import Origin


def left_out(feed: Feed, origins: Mapping[str, Origin]) -> tuple[Outside, ...]:
    """The tables without which a new feed begins.

    Raises Unsupported, with all of them, where the feed file does not have them skipped or no table is left.
    """
    faults: dict[TableId, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for shard, origin in origins.items():
        for table, fault in _faults(shard, origin, feed).items():
            faults[table][fault].append(shard)
    taken = {table for origin in origins.values() for table in origin.estimates}
    if faults and (feed.unusable is Unusable.FAIL or taken == set(faults)):
        raise _refusal(faults, len(origins), whole=taken == set(faults))
    return tuple(
        Outside(table, 0, next(iter(by_fault)).partition(";")[0])
        for table, by_fault in sorted(faults.items())
    )


def _faults(shard: str, origin: Origin, feed: Feed) -> dict[TableId, str]:
    """What is wrong with tables of a shard that cannot be carried."""
    faults = {
        table: str(why).removeprefix(f"shard {shard}, {table}").lstrip(":, ")
        for table, why in origin.unusable.items()
    }
    if origin.keys.keys:
        columns = {
            table: kept_as_they_are(found.columns, feed.treatment_of(table).rules)
            for table, found in origin.tables.items()
        }
        refused = origin.keys.usable_among(columns).refused
        faults |= {table: f"{why}; {REMEDY}" for table, why in refused.items()}
    return faults


def _refusal(
    faults: Mapping[TableId, Mapping[str, Sequence[str]]], shards: int, *, whole: bool
) -> Unsupported:
    how_many = "all" if whole else f"{len(faults)} of the"
    lines = [f"{how_many} tables that `tables` takes cannot be carried:"]
    for table, by_fault in sorted(faults.items()):
        lines += [f"  {table} on {on_shards(named, shards)}: {fault}" for fault, named in by_fault.items()]
    if not whole:
        lines.append(
            "exclude them, by these lines under `tables`, or begin without them with `unusable: skip`:"
        )
        lines += [f"  {exclusion(table)}" for table in sorted(faults)]
    return Unsupported("\n".join(lines))
