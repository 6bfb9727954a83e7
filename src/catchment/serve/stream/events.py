"""What a stream tells, event by event.

Of each transaction come Begin, its rows, and Commit; of each chunk that is copied the same with LastPk. A VGtid follows
whenever all shards have come to one cut: up to there, all that was told is one exact state.
"""

from typing import Any

import msgspec
import pyarrow as pa

from catchment.model.chunk import Bound
from catchment.model.table import Column, TableId

Values = dict[str, Any]


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """A transaction begins, or rows that are `copied`. `gtid` as its server writes it, empty where it gave none.
    `time`: when its server wrote it, in seconds since 1970. Copied rows have neither."""

    keyspace: str
    shard: str
    gtid: str = ""
    time: int = 0
    copied: bool = False


class Field(msgspec.Struct, frozen=True, tag="field"):
    """The columns of a table on a shard from here on. It comes before a table's first row, and whenever they differ."""

    keyspace: str
    shard: str
    table: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]


class Row(msgspec.Struct, frozen=True, tag="row"):
    """A row by the names of its columns: `before` None for one that came, `after` None for one that went.

    TIME is int (signed microseconds), TIMESTAMP a datetime in UTC, DATETIME one without a zone; what no calendar has is
    None.
    """

    keyspace: str
    shard: str
    table: TableId
    before: Values | None
    after: Values | None


class LastPk(msgspec.Struct, frozen=True, tag="last_pk"):
    """All rows of a shard's table up to `key` are copied, which is None where nothing bounds it."""

    keyspace: str
    shard: str
    table: TableId
    key: Bound | None


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """A transaction ends, or a chunk of copied rows. `gtid` and `time` as they began."""

    keyspace: str
    shard: str
    gtid: str = ""
    time: int = 0


class Ddl(msgspec.Struct, frozen=True, tag="ddl"):
    """A statement changed `table` on a shard; the log holds none of what it did to rows.

    `emptied`: no row is left there. Else, in this order, the columns `dropped` are gone from every row, those in
    `renamed` have other names, and those in `added` came. Each of these has this value in every row. Names are as the
    statement has them: a server takes them in any case.
    """

    keyspace: str
    shard: str
    table: TableId
    statement: str
    added: Values
    dropped: tuple[str, ...] = ()
    renamed: dict[str, str] = {}
    emptied: bool = False


class Restart(msgspec.Struct, frozen=True, tag="restart"):
    """What was told of a shard's rows of `table` does not hold any more: forget them. They are copied again, unless the
    table is `gone`."""

    keyspace: str
    shard: str
    table: TableId
    reason: str
    gone: bool = False


class CopyCompleted(msgspec.Struct, frozen=True, tag="copy_completed"):
    """All rows of a shard's table are copied. Without a table: all of every shard are."""

    keyspace: str = ""
    shard: str = ""
    table: TableId | None = None


class VGtid(msgspec.Struct, frozen=True, tag="vgtid"):
    """A place at which a stream can begin again; `text` is opaque. `time_us`: when the shards stood there."""

    text: str
    time_us: int


class Gap(msgspec.Struct, frozen=True, tag="gap"):
    """What happened between two vgtids is not told: a server's client was too slow, and had asked for this. What it has
    is no state of the source any more."""

    since: str
    until: str


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat"):
    """Nothing else has come for `heartbeat_interval`. `time_us`: since 1970."""

    time_us: int


class Batch(msgspec.Struct, frozen=True, tag="batch"):
    """Rows of one version of a table on a shard, each with the columns of a change data feed.

    These are `_change_type` (insert, delete, update_preimage, update_postimage), `_commit_version`,
    `_commit_timestamp`, `_shard`, `_gtid`, `_order`. A transaction over several tables comes in several batches. Copied
    rows are inserts with `_order` 0.
    """

    keyspace: str
    shard: str
    table: TableId
    key: tuple[str, ...]
    rows: pa.Table


Event = Begin | Field | Row | LastPk | Commit | Ddl | Restart | CopyCompleted | VGtid | Gap | Heartbeat
Part = Batch | Ddl | Restart | LastPk | CopyCompleted | VGtid | Gap | Heartbeat
