"""Mistakes to plant where clients of a server share a reader, stand in line, and are slow."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from catchment.feed.clock import Clock
from catchment.model.slow import Slow
from catchment.serve.hub import client, joining, meeting, turnstile
from catchment.serve.hub.client import Client, Reading
from catchment.serve.hub.entrant import Entrant
from catchment.serve.hub.hub import Hub
from catchment.serve.hub.meeting import Meeting
from catchment.serve.hub.ring import Overtaken, Ring
from catchment.serve.hub.shared import SharedReaders
from catchment.serve.hub.turnstile import Turnstile
from catchment.serve.server.telling import ProtoTelling
from catchment.serve.stream import turns

Plant = Callable[[pytest.MonkeyPatch], None]
OF_HUB: dict[str, Plant] = {}


def of_hub(plant: Plant) -> Plant:
    """Add a mistake under the name of its function."""
    OF_HUB[plant.__name__] = plant
    return plant


@of_hub
def a_client_joins_a_reader_that_stands_elsewhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(meeting, "_same", lambda one, other: True)


@of_hub
def a_client_joins_a_reader_though_it_has_rows_to_copy(patch: pytest.MonkeyPatch) -> None:
    def meet(epochs: Any, ring: Any, wait: float) -> Meeting:
        place = ring.end
        if not (place.stands.cut.idle and meeting._later(place, epochs.stands)):
            return Meeting(epochs.turn(wait), None)
        turn = epochs.turn_to(place.stands)
        same = meeting._same(epochs.stands, place.stands)
        return Meeting(turn, place) if same else Meeting(turn or epochs.turn(wait), None)

    patch.setattr(client, "meet", meet)


@of_hub
def who_cannot_join_asks_again_without_a_pause(patch: pytest.MonkeyPatch) -> None:
    def meet(epochs: Any, ring: Any, wait: float) -> Meeting:
        place = ring.end
        if not (place.stands.cut.idle and meeting._later(place, epochs.stands)):
            return Meeting(epochs.turn(wait), None)
        turn = epochs.turn_to(place.stands)
        joins = epochs.stands.cut.idle and meeting._same(epochs.stands, place.stands)
        return Meeting(turn, place if joins else None)

    patch.setattr(client, "meet", meet)


@of_hub
def a_reader_is_joined_where_it_stood_a_turn_before(patch: pytest.MonkeyPatch) -> None:
    put: Any = Ring.put

    def late(ring: Any, entry: Any) -> None:
        before = ring._end
        put(ring, entry)
        entries[id(ring)] = before

    real: Any = meeting.meet
    entries: dict[int, Any] = {}

    def meet(epochs: Any, ring: Any, wait: float) -> Meeting:
        found = real(epochs, ring, wait)
        return Meeting(found.turn, entries.get(id(ring), found.at)) if found.at is not None else found

    patch.setattr(Ring, "put", late)
    patch.setattr(client, "meet", meet)


@of_hub
def columns_are_not_told_to_who_joins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProtoTelling, "catch_up", lambda telling, known: iter(()))


@of_hub
def the_ring_lets_go_of_an_entry_in_silence(patch: pytest.MonkeyPatch) -> None:
    after: Any = Ring.after

    def oldest(ring: Any, index: int, timeout: float) -> Any:
        try:
            return after(ring, index, timeout)
        except Overtaken:
            return ring._entries[0]

    patch.setattr(Ring, "after", oldest)


@of_hub
def who_is_overtaken_goes_on_without_a_gap(patch: pytest.MonkeyPatch) -> None:
    overtaken: Any = Client._overtaken

    def silent(one: Any, following: Any) -> Iterator[Any]:
        if one._slow is not Slow.GAP:
            yield from overtaken(one, following)
            return
        one._last = following.ring.end
        yield from one._telling.catch_up(one._last.known)

    patch.setattr(Client, "_overtaken", silent)


@of_hub
def a_gap_begins_where_the_reader_stands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(client, "Gap", lambda since, until: real(until, until))


real = client.Gap  # type: ignore[attr-defined]


@of_hub
def who_is_overtaken_reads_again_from_where_the_reader_stands(patch: pytest.MonkeyPatch) -> None:
    overtaken: Any = Client._overtaken

    def wrong(one: Any, following: Any) -> Iterator[Any]:
        if one._slow is not Slow.REREAD:
            yield from overtaken(one, following)
            return
        for _ in one._telling.catch_up(one._last.known):
            pass
        one._to(Reading.OWN, epochs=one._readers.own(following.ring.end.stands))

    patch.setattr(Client, "_overtaken", wrong)


@of_hub
def a_reader_that_failed_leaves_its_clients_waiting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ring, "fail", lambda ring, error: None)


@of_hub
def a_reader_goes_on_without_clients(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharedReaders, "leave", lambda shared, same, following: None)


@of_hub
def the_turnstile_lets_in_one_more_than_it_may(patch: pytest.MonkeyPatch) -> None:
    made: Any = Turnstile.__init__
    patch.setattr(Turnstile, "__init__", lambda gate, most, fresh=2: made(gate, most + 1, fresh + 1))


@of_hub
def the_turnstile_forgets_that_some_have_just_begun(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turnstile, "_FRESH_SECONDS", 0.0)


@of_hub
def the_last_in_line_does_not_come_in(patch: pytest.MonkeyPatch) -> None:
    may: Any = Turnstile._may

    def not_the_last(gate: Any, who: Any) -> bool:
        waits = list(gate._line)
        return bool(may(gate, who)) and (who is not waits[-1] or not gate._inside)

    patch.setattr(Turnstile, "_may", not_the_last)


@of_hub
def the_turnstile_waits_for_those_that_take_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turnstile._Stay, "slow", lambda stay, now: False)


@of_hub
def who_came_last_is_let_in_first(patch: pytest.MonkeyPatch) -> None:
    may: Any = Turnstile._may

    def backwards(gate: Any, who: Any) -> bool:
        line = gate._line
        gate._line = dict(reversed(line.items()))
        try:
            return bool(may(gate, who))
        finally:
            gate._line = line

    patch.setattr(Turnstile, "_may", backwards)


@of_hub
def who_left_keeps_its_place_in_line(patch: pytest.MonkeyPatch) -> None:
    close: Any = Entrant.close
    kept: list[Any] = []

    def forgotten(one: Any) -> None:
        if one._client is None:
            kept.append(one._opening)
        else:
            close(one)

    patch.setattr(Entrant, "close", forgotten)


@of_hub
def clients_that_stand_in_line_take_no_place(patch: pytest.MonkeyPatch) -> None:
    made: Any = Hub._client

    def uncounted(hub: Any, *args: Any) -> Any:
        with hub._lock:
            hub._opening -= 1
        try:
            return (yield from made(hub, *args))
        finally:
            with hub._lock:
                hub._opening += 1

    patch.setattr(Hub, "_client", uncounted)


@of_hub
def who_begins_now_is_told_what_was_there(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        joining, "_now", lambda following: following.ring.end if following.ring.end.stands.cut.idle else None
    )


@of_hub
def a_tick_that_was_dropped_counts_as_now(patch: pytest.MonkeyPatch) -> None:
    beyond: Any = Clock._beyond
    patch.setattr(Clock, "_beyond", lambda clock, number, since: beyond(clock, number, None))


@of_hub
def no_place_is_given_where_nothing_is_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(turns, "_PLACE_SECONDS", float("inf"))


@of_hub
def heartbeats_do_not_come_from_a_shared_reader(patch: pytest.MonkeyPatch) -> None:
    waited: Any = Client.waited
    patch.setattr(
        Client,
        "waited",
        lambda one: iter(()) if one._reading is Reading.SHARED else waited(one),
    )
