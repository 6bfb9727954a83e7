"""What a turn has read in front of its cut, and what became of it."""

from catchment.epoch.evidence import SnapshotAt
from catchment.epoch.work import ChunkReceipt, Failed, StagedGroup
from catchment.feed.staging import Ahead, Group
from catchment.model.chunk import Chunk
from catchment.model.errors import CutMissed
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from tests.world.stages import MemoryStage

TABLE = TableId("shop", "t")
AT = LogOffset("binlog.000001", 4)


def group(number: int) -> Group:
    return (Chunk("-80", TABLE, (number,), (number + 1,)),)


def test_groups_keep_their_order_whatever_becomes_of_them() -> None:
    """Of a table nothing counts behind a group that failed, so its place must not change."""
    failed = Failed("-80", CutMissed("no mark"))
    staged = StagedGroup(MemoryStage(), AT, (), (), SnapshotAt(AT), TABLE)
    receipt = ChunkReceipt("-80", (), (), (), 0)
    ahead = Ahead({group(0): staged, group(1): failed, group(2): None, group(3): staged}, 1, 0.0)
    assert list(ahead.readable) == [group(0), group(2), group(3)]
    # The shard of the last one was away when the cut was taken.
    found = ahead.with_failed({group(2): receipt, group(0): receipt})
    assert list(found.items()) == [(group(0), receipt), (group(1), failed), (group(2), receipt)]
