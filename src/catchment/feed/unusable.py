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
from catchment.model.source import Endpoint
from catchment.model.table import RESERVED, Table, TableId
from catchment.schema.foreign_keys import kept_as_they_are
from catchment.source.catalog import listed_tables, read_tables
from catchment.source.each_shard import each_shard
from catchment.source.foreign_keys import REMEDY, uncarried
from catchment.source.session import connect

_Faults = dict[TableId, str]


def left_out(feed: Feed, endpoints: Mapping[str, Endpoint]) -> tuple[Outside, ...]:
    """The tables without which a new feed begins.

    Raises Unsupported, with all of them, where the feed file does not have them skipped or no table is left.
    """
    found = each_shard(endpoints, lambda shard: _survey(endpoints[shard], feed))
    faults: dict[TableId, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for shard, (_, mine) in found.items():
        for table, fault in mine.items():
            faults[table][fault].append(shard)
    taken = {table for tables, _ in found.values() for table in tables}
    if faults and (feed.unusable is Unusable.FAIL or taken == set(faults)):
        raise _refusal(faults, len(endpoints), whole=taken == set(faults))
    return tuple(
        Outside(table, 0, next(iter(by_fault)).partition(";")[0])
        for table, by_fault in sorted(faults.items())
    )


def _survey(endpoint: Endpoint, feed: Feed) -> tuple[list[TableId], _Faults]:
    """The tables of a shard that the rules take, and what is wrong with those that cannot be carried."""
    faults: _Faults = {}
    usable = {}
    with connect(endpoint) as session:
        listed = listed_tables(session, feed.enters)
        there = [table for table, rows in listed.items() if not isinstance(rows, Unsupported)]
        for table, found in {**listed, **read_tables(session, there, RESERVED)}.items():
            if isinstance(found, Unsupported):
                where = f"shard {endpoint.shard}, {table}"
                faults[table] = str(found).removeprefix(where).lstrip(":, ")
            elif isinstance(found, Table):
                usable[table] = kept_as_they_are(found.columns, feed.treatment_of(table).rules)
        for table, why in uncarried(session, usable).items():
            faults[table] = f"{why}; {REMEDY}"
    return list(listed), faults


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
