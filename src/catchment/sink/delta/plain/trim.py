"""Take out of a tail what its plain table has by now."""

from deltalake import DeltaTable, Transaction
from deltalake.transaction import RemoveAction

from catchment import world
from catchment.sink.delta.commit import (
    LakeTable,
    check_fence,
    commit_properties,
    file_lists,
    gone,
    sync_version,
)
from catchment.sink.delta.layout import EPOCH, PART, delta_schema, settled_app
from catchment.sink.delta.plain.settle import SettleOrder


def trim(order: SettleOrder, settled: int) -> int:
    """Take the files of all epochs up to `settled` out of the tail, in one commit that says so; how many they were.
    The files stay until the cleaner comes: older epochs are read from them.

    Raises LeaseLost, SinkConflict, SinkError.
    """
    name = str(order.shape.table)

    def attempt(table: DeltaTable) -> int:
        check_fence(table, order.feed, order.fence, name)
        files = [(part, f) for part, files in file_lists(table).items() for f in files]
        done = [(part, f) for part, f in files if f[f"max.{EPOCH}"] <= settled]
        if not done:
            return 0
        now_ms = world.now_us() // 1000
        removes = [
            RemoveAction(f["path"], True, now_ms, f["size_bytes"], {PART: part.value}) for part, f in done
        ]
        version: int = table.version() + 1
        carries = Transaction(settled_app(order.feed, order.shape.table), settled)
        table.create_write_transaction(
            removes,
            "append",
            delta_schema(order.shape),
            [PART],
            commit_properties=commit_properties(order.feed, order.fence, carries),
        )
        sync_version(order.tail, version)
        return len(done)

    return LakeTable(name, order.tail).commit(attempt, lambda: gone(name, order.tail))
