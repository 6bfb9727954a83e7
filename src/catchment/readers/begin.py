"""Where the rows of a table begin that the log has born."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.birth import Born
from catchment.model.errors import CutMissed
from catchment.model.image import GROUP
from catchment.model.table import TableId
from catchment.schema.events import SchemaEvent
from catchment.schema.passage import MetTable


@dataclass(frozen=True, slots=True)
class Begin:
    """Ordinals of two groups: of the one that made a table, and of the one that defined it last."""

    shard: str
    made: int
    defined: int

    def of_table(self, met: Mapping[TableId, MetTable]) -> dict[TableId, MetTable]:
        """What row events describe since then."""
        return {name: one for name, one in met.items() if one.group >= self.made}

    def since(self, images: pa.Table) -> pa.Table:
        """The images of the table; those in front of its CREATE are of another one that had its name.

        Raises CutMissed for one in front of its last definition: the DDL there may have changed the row.
        """
        groups = images[GROUP]
        mine = images.filter(pc.greater_equal(groups, self.made))
        if mine.num_rows and pc.min(mine[GROUP]).as_py() < self.defined:
            raise CutMissed(f"shard {self.shard}: rows of a table stand in front of its last definition")
        return mine


def begin_of(shard: str, born: Born, events: Iterable[SchemaEvent]) -> Begin:
    """Where the table begins in a stretch with these events. Raises CutMissed where its DDL is not there."""
    groups = {event.at: event.group for event in events}
    try:
        return Begin(shard, groups[born.birth.at], groups[born.defined])
    except KeyError as missing:
        raise CutMissed(f"shard {shard}: the log has no DDL at {missing.args[0]}") from None
