"""Clients over the network that stop reading for a while, beside one that does not."""

from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from catchment.serve.hub.client import Reading
from catchment.serve.stream.events import Event, Gap, Row, VGtid
from tests.promises.serve.server import Caller, Running, server_file, serving, until_copied, up_to
from tests.promises.stream.conftest import Servers
from tests.world.patience import until

FIRST, LAST = 100, 160


@pytest.fixture
def small(tmp_path: Path, feed: Path) -> Iterator[Running]:
    """A server that keeps little for those who are slow."""
    with serving(server_file(tmp_path, feed, buffer="1MB")) as one:
        yield one


def shared(server: Running, clients: int) -> None:
    """Wait until so many clients hear one reader."""
    (served,) = server.feeds._served.values()
    until(
        "all share a reader",
        lambda: [one.reading for one in served.hub.standings()] == [Reading.SHARED] * clients,
    )


def written(servers: Servers, schema: str, first: int, last: int) -> None:
    """Transactions of half a megabyte each on one shard."""
    for key in range(first, last):
        servers["-40"].sql(f"INSERT INTO t VALUES ({key}, REPEAT('x', 512 << 10))", database=schema)


def is_row(key: int) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Row) and event.after is not None and event.after["id"] == key


def keys_of(events: list[Event]) -> list[int]:
    return [event.after["id"] for event in events if isinstance(event, Row) and event.after is not None]


def _read(
    events: Iterator[Event], into: list[Event], done: Callable[[Event], bool], on_gap: Callable[[], None]
) -> grpc.StatusCode | None:
    """Read up to an event; how the stream ended, if it did before."""
    try:
        for event in events:
            into.append(event)
            if isinstance(event, Gap):
                on_gap()
            if done(event):
                return None
    except grpc.RpcError as ended:
        code: grpc.StatusCode = ended.code()
        return code
    return None


@pytest.mark.parametrize("slow", ["REREAD", "GAP", "END"])
def test_who_does_not_read_for_a_while(
    small: Running, callers: Callable[..., Caller], servers: Servers, schema: str, slow: str
) -> None:
    quick, late = callers(small).events(), callers(small).events(slow=f"SLOW_{slow}")
    until_copied(quick)
    before = until_copied(late)
    shared(small, 2)
    written(servers, schema, FIRST, LAST)
    assert keys_of(up_to(quick, is_row(LAST - 1))) == list(range(FIRST, LAST))

    def written_on() -> None:
        written(servers, schema, LAST, LAST + 1)

    found: list[Event] = []
    code = _read(late, found, is_row(LAST if slow == "GAP" else LAST - 1), written_on)
    assert code == (grpc.StatusCode.ABORTED if slow == "END" else None)
    told = keys_of(found)
    if slow == "REREAD":
        assert told == list(range(FIRST, LAST))
        return
    assert told[:1] == [FIRST]
    assert len(told) < LAST - FIRST
    if slow == "GAP":
        assert told[-1] == LAST
        (gap,) = (event for event in found if isinstance(event, Gap))
        missed = callers(small).events(vgtid=gap.since)
        lacking = keys_of(up_to(missed, is_row(LAST)))
        assert sorted({*told, *lacking}) == list(range(FIRST, LAST + 1))
    else:
        last = next(event for event in reversed([*before, *found]) if isinstance(event, VGtid))
        assert keys_of(up_to(callers(small).events(vgtid=last.text), is_row(LAST - 1)))[-1] == LAST - 1
