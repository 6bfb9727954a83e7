"""Messages of a turn that are more than a buffer keeps are made again for each client, and are the same."""

from collections.abc import Iterator

import pytest

from catchment.model.cut import Cut
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.serve.hub.retold import Retold, messages_of
from catchment.serve.hub.telling import Known
from catchment.serve.stream.events import Gap, Heartbeat
from catchment.serve.stream.turn import Turn
from catchment.serve.stream.vgtid import StreamCut


def table_of(*columns: str) -> Table:
    return Table(TableId("s", "t"), tuple(Column(name, ColumnType(Kind.INT)) for name in columns), ("a",))


KNOWN: Known = {("ks/-", TableId("s", "t")): table_of("a")}
LATER: Known = {("ks/-", TableId("s", "t")): table_of("a", "b")}
TURN = Turn(StreamCut(Cut(1, 1, {})), ())


class Words:
    """Tells the columns once, and then rows; it knows `LATER` after the turn."""

    def __init__(self) -> None:
        self.known: Known = {}

    def messages(self, turn: Turn | Heartbeat | Gap) -> Iterator[str]:
        if self.known != KNOWN:
            yield "columns"
        yield "row"
        self.known = LATER
        yield "vgtid"

    def catch_up(self, known: Known) -> Iterator[str]:
        self.known = known
        yield "columns"

    def size(self, message: str) -> int:
        return 10


@pytest.mark.parametrize("known", [{}, KNOWN])
def test_they_are_the_same(known: Known) -> None:
    telling, kept_by = Words(), Words()
    telling.known = kept_by.known = known
    retold, _ = messages_of(TURN, telling, Words, 19)
    kept, nbytes = messages_of(TURN, kept_by, Words, 30)
    assert isinstance(retold, Retold)
    assert isinstance(kept, list)
    assert nbytes == 10 * len(kept)
    assert telling.known == kept_by.known == LATER
    one, other = iter(retold), iter(retold)
    assert [word for pair in zip(one, other, strict=True) for word in pair] == [
        w for word in kept for w in (word, word)
    ]
