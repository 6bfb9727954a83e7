"""Places in a shard's log, and the GTIDs that MariaDB gives to groups (those of MySQL: model/gtidset.py).

Two kinds of place are kept apart by type. A `LogOffset` is what a status variable or a plan says: it is
taken on credit. A `Position` is a place where a reader that came from a verified place arrived as the end of
a group (DESIGN: chain rule). Only positions enter a cut.
"""

import re
from enum import Enum

import msgspec

from catchment.model.gtidset import GtidSet


class Order(Enum):
    """How two places lie to one another. There is no `<`: logs of two servers cannot be compared."""

    BEFORE = "before"
    EQUAL = "equal"
    AFTER = "after"
    CONCURRENT = "concurrent"


# COM_BINLOG_DUMP takes 32 bits.
DUMP_OFFSET_MAX = 2**32 - 1


class LogOffset(msgspec.Struct, frozen=True, order=False):
    """A byte offset in one log file, e.g. `binlog.000042:1337`; the offset is that of the next event."""

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    @property
    def base(self) -> str:
        """File name without its running number."""
        return self.file.rpartition(".")[0]

    @property
    def number(self) -> int:
        """Running number of the file; compared as a number, since names grow in digits."""
        digits = self.file.rpartition(".")[2]
        return int(digits) if digits.isdigit() else -1


def relation(a: LogOffset, b: LogOffset) -> Order:
    """Order of two offsets of one server's log; CONCURRENT when the files belong to different logs."""
    if a.base != b.base:
        return Order.CONCURRENT
    left, right = (a.number, a.offset), (b.number, b.offset)
    if left == right:
        return Order.EQUAL
    return Order.BEFORE if left < right else Order.AFTER


def reaches(a: LogOffset, b: LogOffset) -> bool:
    """True when `a` lies at or after `b` in the same log."""
    return relation(a, b) in (Order.EQUAL, Order.AFTER)


class Gtid(msgspec.Struct, frozen=True):
    """A MariaDB GTID `domain-server-sequence` (MariaDB manual: Global Transaction ID)."""

    domain: int
    server_id: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server_id}-{self.sequence}"


_GTID = re.compile(r"(\d+)-(\d+)-(\d+)")


class GtidList(msgspec.Struct, frozen=True, tag="mariadb"):
    """The GTID written last in every domain, sorted by domain: where a MariaDB log stands. Empty at its birth."""

    gtids: tuple[Gtid, ...] = ()

    def __post_init__(self) -> None:
        domains = [g.domain for g in self.gtids]
        if domains != sorted(set(domains)):
            raise ValueError(f"GTID list must hold one GTID per domain, sorted: {self}")

    @classmethod
    def parse(cls, text: str) -> "GtidList":
        """Read `0-1-5,1-2-7`; raises ValueError on anything else."""
        newest: dict[int, Gtid] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            match = _GTID.fullmatch(part)
            if match is None:
                raise ValueError(f"not a MariaDB GTID: {part!r}")
            gtid = Gtid(int(match[1]), int(match[2]), int(match[3]))
            newest[gtid.domain] = gtid
        return cls(tuple(newest[d] for d in sorted(newest)))

    def with_gtid(self, gtid: Gtid) -> "GtidList":
        """The list after one more group."""
        kept = [g for g in self.gtids if g.domain != gtid.domain]
        return GtidList(tuple(sorted([*kept, gtid], key=lambda g: g.domain)))

    def __str__(self) -> str:
        return ",".join(map(str, self.gtids))


Gtids = GtidList | GtidSet


def gtids_after(known: Gtids, newest: dict[int, Gtid], named: GtidSet) -> Gtids:
    """The GTIDs after a stretch of log: of MariaDB the newest per domain count, of MySQL all of them."""
    if isinstance(known, GtidSet):
        return known.union(named)
    for gtid in newest.values():
        known = known.with_gtid(gtid)
    return known


class Server(msgspec.Struct, frozen=True):
    """Who answered: compared in every session, so that a proxy or a new server cannot pass for the old one.

    `uuid` is MySQL's server_uuid, empty on MariaDB, which has none.
    """

    server_id: int
    hostname: str
    port: int
    uuid: str = ""

    @property
    def mysql(self) -> bool:
        """Whether it is MySQL."""
        return bool(self.uuid)

    def gtids(self, text: str) -> Gtids:
        """GTIDs as this server writes them; raises ValueError."""
        return GtidSet.parse(text) if self.mysql else GtidList.parse(text)

    def __str__(self) -> str:
        name = f", server_uuid {self.uuid}" if self.uuid else ""
        return f"server_id {self.server_id} at {self.hostname}:{self.port}{name}"


class GroupKind(Enum):
    """What a group of the log is. COMPLETED_DDL: MariaDB's group of one DDL statement, which it logs when the statement
    is over, while the statement still holds its metadata locks."""

    TRANSACTION = "transaction"
    ROLLED_BACK = "rolled back"
    DDL = "ddl"
    COMPLETED_DDL = "completed ddl"
    XA_PREPARE = "xa prepare"
    XA_END = "xa commit or rollback"


class LastGroup(msgspec.Struct, frozen=True):
    """The newest group up to a position: where it starts and ends and what it was. Used as sealing evidence."""

    start: LogOffset
    end: LogOffset
    kind: GroupKind
    gtid: Gtid


class Xid(msgspec.Struct, frozen=True):
    """Name of an XA transaction, as XA RECOVER shows it: format, global and branch part."""

    format: int
    gtrid: bytes
    bqual: bytes

    @property
    def parts(self) -> tuple[bytes, bytes]:
        """What is unique among open XA transactions: the server ignores the format (seen on MariaDB 10.11)."""
        return self.gtrid, self.bqual

    def __str__(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format}"


class XaGroup(msgspec.Struct, frozen=True):
    """A group of the log that prepares or ends an XA transaction. `ordinal` is counted as in its stretch; `time`
    is the server's, in seconds since 1970.
    """

    kind: GroupKind
    committed: bool
    xid: Xid
    start: LogOffset
    end: LogOffset
    ordinal: int
    time: int

    @property
    def prepared(self) -> "Prepared":
        """What is to be kept of a PREPARE."""
        return Prepared(self.xid, self.start, self.end, self.time)


class Prepared(msgspec.Struct, frozen=True):
    """The group from `start` to `end` that prepared an XA transaction at `time` (seconds since 1970). Its rows
    count from its XA COMMIT on.

    `committed`: where the group of its XA COMMIT begins; None while it is open.
    """

    xid: Xid
    start: LogOffset
    end: LogOffset
    time: int
    committed: LogOffset | None = None


class Resets(msgspec.Struct, frozen=True):
    """How many RESET statements a server had counted since its start at `started`, when it was asked at `asked`.
    Both are the server's time in seconds since 1970."""

    count: int
    started: int
    asked: int


class LastEvent(msgspec.Struct, frozen=True):
    """The event of the log that ends at a place: its bytes, and the CRC32 of them without a checksum of their own.

    It holds the second in which it was written and, of a transaction, the server's number for that. So another log
    has another event there, or none that ends there.
    """

    size: int
    crc: int


class Position(msgspec.Struct, frozen=True):
    """A verified place: the end of a group (or the start of a file's first one) in one server's log.

    `born` is the header time of the file's format event in seconds since 1970. Together with the server it tells this
    file from another one of the same name (after RESET MASTER). `resets` was asked before the log was read up to
    here, and tells such a file even when it was born in the same second. `event` is read again, and compared, by
    whoever reads on from here; None where it is not known. `gtids`: of MariaDB the GTID that was written last in
    each domain, which need not be the largest (gtid_strict_mode=OFF).
    `prepared`: the XA transactions that are open here, and those committed before here but not before what is
    known to be sealed. A reader that starts between there and here meets their XA COMMIT.
    """

    at: LogOffset
    born: int
    server: Server
    gtids: Gtids
    resets: Resets | None = None
    prepared: tuple[Prepared, ...] = ()
    event: LastEvent | None = None

    def __str__(self) -> str:
        return f"{self.at} [{self.gtids}]"
