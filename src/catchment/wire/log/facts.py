"""Rare facts that a log tells besides rows and groups, as values in the order met.

`at` of a fact is where its event begins, `group` the ordinal of the group it stands in, counted as in
`LogDecoder.take_groups`.
"""

import msgspec
import pyarrow as pa

from catchment.model.position import LogOffset, Xid
from catchment.model.table import Table, TableId


class Images(msgspec.Struct, frozen=True):
    """Image rows of one version of one table (columns SIDE, OP, SEQ, GROUP of model.image come last)."""

    table: Table
    batch: pa.RecordBatch


class LogFile(msgspec.Struct, frozen=True):
    """A log file met. `created` is not 0 after a server start only; a dump from the middle shows 0.

    `born` is the header time of the format event and `server_id` is its writer. `gtid_list` is None until it
    has been read (never in a dump from the middle). `complete`: the file ended with a ROTATE or STOP event.
    """

    name: str
    born: int
    server_id: int
    gtid_list: str | None
    complete: bool
    created: int


class Ddl(msgspec.Struct, frozen=True):
    """A statement that is a group of its own, or one in a group that the server marked as DDL.

    `flagged`: the server marked the group as DDL (MariaDB 10.11 marks FLUSH, ANALYZE and CREATE USER too).
    `schema` is the default schema of the session, `sql_mode` its mode as a number. `mysql`: the server is no MariaDB.
    `doubtful`: the event says that its session used a temporary table for it, or that it failed. `folds`: the server
    has names of tables and schemas in lower case, whatever a statement writes.
    """

    group: int
    schema: str
    sql: str
    at: LogOffset
    timestamp: int
    flagged: bool
    sql_mode: int
    mysql: bool = False
    doubtful: bool = False
    folds: bool = False


class Statement(msgspec.Struct, frozen=True):
    """A statement inside a transaction: rows were changed in STATEMENT format, which carries no rows.

    `schema`, `sql_mode`, `mysql` and `folds` as of a `Ddl`.
    """

    group: int
    schema: str
    sql: str
    at: LogOffset
    timestamp: int
    sql_mode: int
    mysql: bool = False
    folds: bool = False


class Checkpoint(msgspec.Struct, frozen=True):
    """A Binlog_checkpoint event: groups in files before `file` are durable (DESIGN section 3)."""

    file: str
    at: LogOffset


class RotateTo(msgspec.Struct, frozen=True):
    """The last event of a file: the log goes on in `file`."""

    file: str
    at: LogOffset


class ServerStop(msgspec.Struct, frozen=True):
    """The server was shut down in order."""

    at: LogOffset


class CutOff(msgspec.Struct, frozen=True):
    """A file ended inside this group, without ROTATE or STOP: its rows are in `voids`, it has no row."""

    group: int
    start: LogOffset
    at: LogOffset


class XaPrepare(msgspec.Struct, frozen=True):
    """An XA transaction was prepared: its rows are those of this group."""

    group: int
    xid: Xid
    at: LogOffset


class XaEnd(msgspec.Struct, frozen=True):
    """An XA transaction prepared earlier was committed or rolled back."""

    group: int
    xid: Xid
    committed: bool
    at: LogOffset


class Incident(msgspec.Struct, frozen=True):
    """The server lost events: the log is not complete here."""

    number: int
    message: str
    at: LogOffset


class PartialImage(msgspec.Struct, frozen=True):
    """A row event lacks columns: `binlog_row_image` was not FULL in its session.

    `before` and `after` are the columns that its images have (none when it has no such image). `rows` is the
    half-open range of SEQ that its rows have, with absent columns as null. It is empty, and nothing was
    decoded, unless the decoder was told to.
    """

    group: int
    table: TableId
    at: LogOffset
    before: tuple[str, ...]
    after: tuple[str, ...]
    rows: tuple[int, int]


class Unreadable(msgspec.Struct, frozen=True):
    """A table's rows are not decoded from this event on: a value or a label is no text, or a type is not carried."""

    group: int
    table: TableId
    at: LogOffset
    why: str


Fact = (
    Ddl
    | Statement
    | Checkpoint
    | RotateTo
    | ServerStop
    | CutOff
    | XaPrepare
    | XaEnd
    | Incident
    | PartialImage
    | Unreadable
)
