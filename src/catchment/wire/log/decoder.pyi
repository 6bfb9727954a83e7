from collections.abc import Callable, Collection, Mapping
from typing import Literal

import pyarrow as pa

from catchment.model.definition import Definition
from catchment.model.position import LastEvent, LastGroup, LogOffset
from catchment.model.table import Kind, TableId
from catchment.wire.log.facts import Ddl, Fact, Images, LogFile

class LogDecoder:
    """Decodes one dump of a log of MariaDB or MySQL, from the first byte that the server sends after COM_BINLOG_DUMP.

    `start` is what the dump asks for: the start of a file (offset 4) or a place between groups. `wanted` are the tables
    whose rows are decoded (None: all). `keys` gives their key columns where the log shall not tell them. `kinds` are
    the columns that the log declares as BINARY and the catalog as something else (types.logged_as_binary).
    `definitions` of wanted tables as of `start` tell what table maps without full metadata do not, and are compared
    with what table maps say. `on_ddl` is asked at every DDL which definitions it changes; a table that
    it gives None for is not wanted any more.

    `behind` is the event that ended at `start` when that was read. The dump then begins in front of it, at `begins`,
    and the decoder raises Diverged for any other event.

    With `stop`, decoding ends where a group ends exactly there, or the reader stands there between groups.

    `before`: "full" decodes BEFORE images whole. "key" decodes only their key columns (the others are null). It leaves
    the BEFORE image of an update out when the key stays the same, byte for byte.

    With `sparse`, row events that lack columns are decoded too, absent columns as null. The fact PartialImage says
    which are there; without `sparse` it is all that is told of such an event. Of an update that lacks columns both
    images are given, whatever `before` says.

    An error ends the decoder: `feed` raises the same error again.
    """

    facts: list[Fact]
    ended: bool  # the server's end-of-log packet has come
    begins: LogOffset  # where the dump has to begin
    folds: bool  # the server has names of tables in lower case; to be set before the first byte comes
    reached_stop: bool  # the reader stands at `stop`; later bytes are ignored
    def __init__(
        self,
        start: LogOffset,
        wanted: Collection[TableId] | None = None,
        stop: LogOffset | None = None,
        *,
        keys: Mapping[TableId, tuple[str, ...]] | None = None,
        kinds: Mapping[TableId, Mapping[str, Kind]] | None = None,
        definitions: Mapping[TableId, Definition] | None = None,
        on_ddl: Callable[[Ddl], Mapping[TableId, Definition | None]] | None = None,
        before: Literal["full", "key"] = "full",
        sparse: bool = False,
        verify_checksum: bool = True,
        behind: LastEvent | None = None,
    ) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Decode all whole packets of the connection's next bytes; a piece of a packet is kept.

        Raises CorruptLog (file and offset), CutMissed, ServerSaid (an error packet), Unsupported, Undescribed,
        Diverged, and what `on_ddl` raises.
        """

    def resume(self) -> None:
        """Go on after the server's error or end-of-log packet with the bytes of a new dump. That begins with a later
        file, or at `at` when no group is open.
        """

    def take_images(self) -> list[Images]:
        """Image rows decoded since the last call, also of a group that is still open.

        Columns of the table come first, then those of model.image. SIDE is uint8: 0 before, 1 after. OP is uint8: 0
        insert, 1 delete, 2 update, and 4 more of a session with foreign_key_checks=0. SEQ is int64: the order over the
        whole run. GROUP is int64: the ordinal of the group. Rows in `voids` were undone; rows of a
        group that never ends (`in_group` at the end) count for nothing.
        """

    def take_groups(self) -> pa.RecordBatch:
        """Groups finished since the last call (schema: groups.SCHEMA).

        `file` is an index into `files`, `kind` one into the order of model.position.GroupKind. `start` and `end` are
        offsets. `timestamp` is that of the group's last event in seconds since 1970. MariaDB names a group by `domain`,
        `server_id`, `sequence`; MySQL by `uuid` (16 bytes), `tag` (may be empty) and `sequence`. `uuid` and `tag` are
        null for MariaDB, and on MySQL for groups without a GTID.
        """

    @property
    def pending_bytes(self) -> int:
        """Bytes that the rows and groups not yet taken occupy, about."""

    @property
    def voids(self) -> list[tuple[int, int]]:
        """Half-open ranges of SEQ that were undone, in order, not overlapping."""

    @property
    def files(self) -> list[LogFile]:
        """Log files met, in order."""

    @property
    def at(self) -> LogOffset:
        """Where the reader stands: the end of the last group, or of an event between groups behind it."""

    @property
    def last_event(self) -> LastEvent | None:
        """The event that ends at `at`; None where it is none by which a log is told."""

    @property
    def in_group(self) -> bool:
        """Whether a group has begun and not ended."""

    @property
    def last_group(self) -> LastGroup | None:
        """The group that ended last; None before the first."""
