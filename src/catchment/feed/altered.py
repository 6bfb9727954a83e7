"""What an epoch whose tables were altered asks besides its log: catalog, comments, and what is done about losses."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from catchment.epoch.gather import Gathered
from catchment.epoch.work import SegmentReceipt
from catchment.model.epoch import Manifest
from catchment.model.errors import Unsupported
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, Table, TableId
from catchment.source.catalog import read_table
from catchment.source.comments import commented_now
from catchment.source.each_shard import each_shard
from catchment.source.session import connect


def told_by_catalog(
    endpoints: Mapping[str, Endpoint], receipts: Iterable[SegmentReceipt]
) -> dict[ShardTable, Table]:
    """Definitions of tables that gained columns, where no row event has shown them yet."""
    untold = {
        receipt.shard: (receipt.reached.server, tables)
        for receipt in receipts
        if receipt.altered
        and (tables := [table for table, passage in receipt.passages().items() if passage.untold])
    }

    def ask(shard: str) -> dict[ShardTable, Table]:
        server, tables = untold[shard]
        with connect(endpoints[shard], server) as session:
            return {ShardTable(shard, table): read_table(session, table) for table in tables}

    return {of: table for found in each_shard(untold, ask).values() for of, table in found.items()}


def commented(endpoints: Mapping[str, Endpoint], previous: Manifest, gathered: Gathered) -> Gathered:
    """What was gathered, with the comments that altered tables have now."""
    if gathered.shapes is previous.known:
        return gathered
    before = previous.known.by_table
    altered = [shape for shape in gathered.shapes if shape.columns != before[shape.table].columns]
    if not altered:
        return gathered
    asked = [endpoints[shard] for shard in gathered.segments]
    after = {shape.table: shape for shape in commented_now(altered, asked)}
    return dataclasses.replace(gathered, shapes=gathered.shapes.replaced(after))


def lost_in(previous: Manifest, gathered: Gathered, follows: Callable[[TableId], bool]) -> set[TableId]:
    """The tables that cannot be followed any more. Raises Unsupported where they are to end the run: where it does not
    follow what becomes of them."""
    if not gathered.stale:
        return set()
    lost = {one.table for one in gathered.stale} - gathered.shapes.tables
    lost -= {one.table for one in previous.lost}
    failing = [one for one in gathered.stale if one.table in lost and not follows(one.table)]
    if failing:
        raise Unsupported("; ".join(one.reason for one in failing))
    return lost
