"""The ring by itself: nothing is lost in silence, and it holds no more than it may."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model.cut import Cut
from catchment.serve.hub.client import MOVES, Reading
from catchment.serve.hub.ring import Entry, Overtaken, Place, Ring
from catchment.serve.stream.tables import Definitions
from catchment.serve.stream.vgtid import StreamCut

STANDS = StreamCut(Cut(1, 1, {}))


def place(index: int) -> Place:
    return Place(index, STANDS, {}, index, Definitions(()))


def entry(number: int, nbytes: int) -> Entry[int]:
    return Entry((number,), nbytes, place(number + 1))


def taken(ring: Ring[int], index: int) -> int | None:
    found = ring.after(index, 0)
    return None if found is None else next(iter(found.messages))


@given(st.lists(st.integers(1, 40), max_size=40), st.integers(0, 60), st.data())
def test_a_client_hears_all_or_is_told(sizes: list[int], bytes_max: int, data: Any) -> None:
    """Against a list that forgets nothing; the writer and a client take turns as it comes."""
    ring: Ring[int] = Ring(bytes_max, place(0))
    next_one = 0
    for number, nbytes in enumerate(sizes):
        ring.put(entry(number, nbytes))
        assert ring.nbytes <= bytes_max or ring.nbytes == nbytes
        waiting, waiting_bytes = ring.waiting(next_one)
        assert waiting == number + 1 - next_one
        assert waiting_bytes <= sum(sizes[next_one : number + 1])
        for _ in range(data.draw(st.integers(0, 3))):
            if next_one > number:
                assert taken(ring, next_one) is None
                break
            fits = sum(sizes[next_one : number + 1]) <= bytes_max
            if fits or next_one == number:
                assert taken(ring, next_one) == next_one
                next_one += 1
            else:
                with pytest.raises(Overtaken):
                    taken(ring, next_one)
                next_one = ring.end.index


def test_what_was_told_comes_before_the_error() -> None:
    ring: Ring[int] = Ring(100, place(0))
    ring.put(entry(0, 10))
    ring.fail(ValueError("gone"))
    assert taken(ring, 0) == 0
    with pytest.raises(ValueError, match="gone"):
        taken(ring, 1)


def test_who_waits_is_woken() -> None:
    ring: Ring[int] = Ring(100, place(0))
    found: list[Any] = []
    waits = threading.Thread(target=lambda: found.append(ring.after(0, 60)))
    waits.start()
    ring.put(entry(0, 10))
    waits.join(30)
    assert found
    assert found[0].messages == (0,)
    begin = ring.end
    moves = threading.Thread(target=lambda: found.append(ring.beyond(begin, 60)))
    moves.start()
    ring.moved(place(1))
    moves.join(30)
    assert found[1] is not begin


def test_no_client_comes_back_from_the_end() -> None:
    assert {after for _, after in MOVES} == {Reading.SHARED, Reading.OWN, Reading.CLOSED}
    assert not any(before is Reading.CLOSED for before, _ in MOVES)
