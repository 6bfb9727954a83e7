"""The event in front of the start, byte by byte: only the one that was read there before is passed over."""

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CatchmentError, CutMissed, Diverged
from catchment.model.position import LastEvent, LogOffset
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.dumps import end_of_log, read_dump
from tests.layers.wire.events import events_of, joined

Recorded = tuple[LogOffset, LastEvent, bytes]
_XID = 16


@pytest.fixture(scope="module")
def recorded(shard: PrivateServer) -> Recorded:
    """A place behind a transaction, the event that ends there, and a dump from in front of that event on."""
    head = end_of_log(shard)
    shard.sql(
        "CREATE DATABASE front",
        "CREATE TABLE front.t (id INT PRIMARY KEY)",
        "INSERT INTO front.t VALUES (1)",
    )
    start = end_of_log(shard)
    before = LogDecoder(head, stop=start)
    before.feed(read_dump(shard, head))
    event = before.last_event
    assert event is not None
    assert event.size == 31
    shard.sql("INSERT INTO front.t VALUES (2)", "DROP DATABASE front")
    raw = read_dump(shard, LogOffset(start.file, start.offset - event.size))
    return start, event, raw


def behind(recorded: Recorded, raw: bytes, *, verify: bool = True) -> LogDecoder:
    start, event, _ = recorded
    decoder = LogDecoder(start, behind=event, verify_checksum=verify)
    assert decoder.begins == LogOffset(start.file, start.offset - event.size)
    decoder.feed(raw)
    return decoder


def test_reading_goes_on_behind_it(recorded: Recorded) -> None:
    start, event, raw = recorded
    decoder = behind(recorded, raw)
    groups = decoder.take_groups()
    assert groups.column("start")[0].as_py() == start.offset
    assert groups.num_rows == 2
    stopped = LogDecoder(start, stop=start, behind=event)
    stopped.feed(raw)
    assert (stopped.reached_stop, stopped.at, stopped.last_event) == (True, start, event)
    assert stopped.take_groups().num_rows == 0


@pytest.mark.parametrize("verify", [True, False], ids=["checksums verified", "not verified"])
def test_no_other_event_is_passed_over(recorded: Recorded, verify: bool) -> None:
    """A byte of the event changed, its checksum alone excepted where nobody verifies it."""
    _, event, raw = recorded
    events = events_of(raw)
    place = next(i for i, one in enumerate(events) if len(one) == event.size and one[4] == _XID)
    refused = 0
    for at in range(event.size - (0 if verify else 4)):
        changed = bytearray(events[place])
        changed[at] ^= 0x15
        with pytest.raises(CatchmentError) as raised:
            behind(recorded, joined([*events[:place], bytes(changed), *events[place + 1 :]]), verify=verify)
        refused += isinstance(raised.value, Diverged)
    assert verify or refused > event.size // 2
    with pytest.raises(CatchmentError):  # none at all: what comes next does not begin there
        behind(recorded, joined([*events[:place], *events[place + 1 :]]), verify=verify)
    with pytest.raises(CutMissed, match="ended before"):
        behind(recorded, joined(events[:place]), verify=verify)
