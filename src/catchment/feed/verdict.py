"""What a verification finds, and how far it has come."""

from dataclasses import dataclass, field

from catchment.model.chunk import Chunk
from catchment.model.shard import Copy
from catchment.model.stale import Stale
from catchment.model.table import TableId
from catchment.readers.verify import VerifyReceipt
from catchment.rewind.compare import Differences

# How far each shard's tables are compared: as copies, since that is done in chunks, too.
Compared = dict[str, tuple[Copy, ...]]


@dataclass
class Verdict:
    """What a verification found. `epochs`: the first and the last epoch compared; `rows` by table. `stale`: tables that
    stand as of an earlier epoch, which nothing of now can be compared with. `differing`: runs of chunks in which keys
    differ. `strays`: tables with rows under shards that do not have them. `parts`: how many chunks were compared, of
    how many that there are. `resumed`: rows that were compared before it was interrupted. `keys`: how many had changed,
    where only what changed was compared; `whole`: what was compared whole then. `unproven`: keys that count as the log
    has them, since their SELECTs returned rows of before a change that nothing has proven visible yet."""

    rows: dict[TableId, int] = field(default_factory=dict)
    found: dict[TableId, Differences] = field(default_factory=dict)
    epochs: tuple[int, int] = (0, 0)
    partial: tuple[str, ...] = ()
    stale: tuple[Stale, ...] = ()
    differing: list[tuple[Chunk, ...]] = field(default_factory=list)
    strays: list[TableId] = field(default_factory=list)
    parts: tuple[int, int] = (0, 0)
    resumed: int = 0
    keys: int = 0
    whole: tuple[str, ...] = ()
    unproven: dict[TableId, int] = field(default_factory=dict)

    def take(self, table: TableId, receipt: VerifyReceipt) -> None:
        """Add what a task has found in a table."""
        self.rows[table] = self.rows.get(table, 0) + receipt.rows[table]
        self.found[table] = self.found.get(table, Differences()) + receipt.found[table]
        if table in receipt.unproven:
            self.unproven[table] = self.unproven.get(table, 0) + receipt.unproven[table]

    @property
    def differences(self) -> int:
        """Keys that differ, over all tables."""
        return sum(found.total for found in self.found.values())
