"""What is sealed where a log was followed without a question: what checkpoint events prove, and nothing else."""

import pytest

from catchment.model.gtidset import GtidSet
from catchment.model.position import (
    GroupKind,
    Gtid,
    GtidList,
    LastGroup,
    LogOffset,
    Position,
    Server,
    XaGroup,
    Xid,
)
from catchment.readers.checks import passed
from catchment.source.stretch import Stretch
from catchment.wire.log.facts import Checkpoint

START = Position(LogOffset("b.000002", 500), 1, Server(1, "h", 3306), GtidList(()))
END = LogOffset("b.000002", 900)
KNOWN = LogOffset("b.000001", 700)
HEAD = LogOffset("b.000002", 4)
XID = Xid(1, b"x", b"")


def met(*checkpoints: str, xa: tuple[XaGroup, ...] = ()) -> Stretch:
    """A stretch whose last group is a transaction that ends it."""
    gtid = Gtid(0, 1, 5)
    return Stretch(
        at=END,
        files=(),
        first=None,
        newest={0: gtid},
        newest_before={},
        named=GtidSet(),
        last=LastGroup(LogOffset("b.000002", 700), END, GroupKind.TRANSACTION, gtid),
        last_event=None,
        boundary=0,
        groups=1,
        xa=xa,
        facts=tuple(Checkpoint(file, END) for file in checkpoints),
        voids=[],
        read_bytes=0,
        group_bytes=0,
        event_time=1,
        reached_stop=False,
        whole=False,
    )


def committed() -> tuple[XaGroup, ...]:
    start, end = LogOffset("b.000002", 600), LogOffset("b.000002", 650)
    prepare = XaGroup(GroupKind.XA_PREPARE, False, XID, LogOffset("b.000002", 500), start, 0, 1)
    return prepare, XaGroup(GroupKind.XA_END, True, XID, start, end, 1, 1)


@pytest.mark.parametrize(
    ("stretch", "sealed"),
    [
        (met(), KNOWN),
        (met("b.000002"), HEAD),
        (met("b.000001"), KNOWN),
        (met("b.000002", xa=committed()), KNOWN),
    ],
)
def test_what_is_sealed(stretch: Stretch, sealed: LogOffset) -> None:
    arrival = passed("s", START, KNOWN, stretch)
    assert (arrival.position.at, arrival.sealed) == (END, sealed)


def test_an_xa_commit_is_kept_until_it_is_known_to_be_visible() -> None:
    (kept,) = passed("s", START, KNOWN, met(xa=committed())).position.prepared
    assert kept.committed == LogOffset("b.000002", 600)
