"""Mistakes to plant in what streams send, in what subscribers acknowledged, and in how shards are kept together."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from catchment.serve.hub.ends import Why
from catchment.serve.hub.said import Said
from catchment.serve.hub.subscribed import Subscribed
from catchment.serve.hub.subscribers import Subscribers
from catchment.serve.server import calls
from catchment.serve.stream import (
    advance,
    alignment,
    chunks,
    epochs,
    events_of,
    kept_images,
    shard_reader,
    stream_shards,
)
from catchment.serve.stream.alignment import Alignment
from catchment.serve.stream.epochs import Epochs
from catchment.serve.stream.events import Commit, VGtid
from catchment.serve.stream.events_of import RowTeller
from catchment.serve.stream.vgtid import written
from catchment.source import log, stretch
from catchment.state import subscribers

Plant = Callable[[pytest.MonkeyPatch], None]
OF_STREAMS: dict[str, Plant] = {}


def of_streams(plant: Plant) -> Plant:
    """Add a mistake under the name of its function."""
    OF_STREAMS[plant.__name__] = plant
    return plant


# What clients receive.


@of_streams
def a_vgtid_is_told_before_the_last_transaction(patch: pytest.MonkeyPatch) -> None:
    events: Any = RowTeller.events

    def early(teller: Any, turn: Any) -> Iterator[Any]:
        found = list(events(teller, turn))
        ends = [number for number, event in enumerate(found) if isinstance(event, Commit)]
        if len(ends) > 1 and isinstance(found[-1], VGtid):
            found.insert(ends[-2] + 1, found.pop())
        yield from found

    patch.setattr(RowTeller, "events", early)


@of_streams
def a_vgtid_is_that_of_the_turn_before(patch: pytest.MonkeyPatch) -> None:
    told: Any = events_of.vgtid_of  # type: ignore[attr-defined]
    before: list[Any] = []

    def late(turn: Any) -> Iterator[Any]:
        *rest, vgtid = told(turn)
        yield from rest
        yield before.pop() if before and not turn.ahead else vgtid
        before.append(vgtid)

    patch.setattr(events_of, "vgtid_of", late)


@of_streams
def the_last_row_of_a_chunk_is_left_out(patch: pytest.MonkeyPatch) -> None:
    copied: Any = shard_reader.copied  # type: ignore[attr-defined]

    def fewer(work: Any, planner: Any, tick: Any) -> Any:
        found = copied(work, planner, tick)
        rows = [
            chunks.CopiedRows(one.table, one.rows.slice(0, max(0, one.rows.num_rows - 1)), one.last, one.done)
            for one in found.rows
        ]
        return chunks.Copied(found.state, rows)

    patch.setattr(shard_reader, "copied", fewer)


@of_streams
def a_log_that_comes_by_itself_is_never_asked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(epochs, "_UNASKED_SECONDS", 1e9)


@of_streams
def a_copy_is_further_than_its_rows(patch: pytest.MonkeyPatch) -> None:
    advanced: Any = chunks._advanced

    def further(state: Any, table: Any, of: Any, rows: int) -> Any:
        found = advanced(state, table, of, rows)
        copies = tuple(
            replace(one, copied=(one.copied[0] + 1,)) if one.copied and not one.done else one
            for one in found.copies
        )
        return replace(found, copies=copies)

    patch.setattr(chunks, "_advanced", further)


@of_streams
def changes_of_rows_that_are_not_copied_yet_are_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(kept_images, "follows_log", lambda images, key, copy: None)


@of_streams
def changes_of_rows_that_were_born_later_are_not_told(patch: pytest.MonkeyPatch) -> None:
    follows: Any = kept_images.follows_log  # type: ignore[attr-defined]
    patch.setattr(
        kept_images,
        "follows_log",
        lambda images, key, copy: follows(images, key, replace(copy, born_after=None)),
    )


@of_streams
def transactions_of_a_table_that_restarts_are_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(advance, "_voids", lambda work, stopped, there: [])


@of_streams
def that_all_is_copied_is_told_once(patch: pytest.MonkeyPatch) -> None:
    taken: Any = Epochs._taken

    def once(one: Any, *args: Any, **named: Any) -> Any:
        before = one.stands.cut.copied
        turn = taken(one, *args, **named)
        if turn is None or not before:
            return turn
        return type(turn)(turn.stands, turn.shards, False, turn.empty, turn.ahead)

    patch.setattr(Epochs, "_taken", once)


@of_streams
def what_is_left_of_a_long_log_is_not_read(patch: pytest.MonkeyPatch) -> None:
    advanced: Any = shard_reader.advanced  # type: ignore[attr-defined]

    def at_the_tick(work: Any) -> Any:
        told = advanced(work)
        if told.shown:
            return told
        position = replace(told.state.position, at=work.stop, event=None)
        return dataclasses.replace(told, shown=True, state=replace(told.state, position=position))

    patch.setattr(shard_reader, "advanced", at_the_tick)


@of_streams
def the_head_of_a_file_has_the_birth_of_the_one_before(patch: pytest.MonkeyPatch) -> None:
    made: Any = stretch.stretch_of

    def beyond(decoder: Any, tally: Any, start: Any, read_bytes: int, *, over: bool) -> Any:
        found = made(decoder, tally, start, read_bytes, over=over)
        at = decoder.at
        if (
            over
            and decoder.files
            and at.file != decoder.files[-1].name
            and stretch._end(decoder.last_group) == stretch._end(tally.last)
        ):
            return dataclasses.replace(found, at=at)
        return found

    patch.setattr(log, "stretch_of", beyond)


@of_streams
def a_log_that_was_lost_is_passed_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stream_shards, "must_go_on", lambda endpoint, position: position)
    patch.setattr(advance, "must_be_unbroken", lambda endpoint, position, resets: None)
    patch.setattr(advance, "must_be_whole", lambda *args: None)


# What subscribers have acknowledged.


@of_streams
def what_a_subscriber_is_given_counts_as_acknowledged(patch: pytest.MonkeyPatch) -> None:
    pull: Any = Subscribed.pull

    def acknowledged(one: Any) -> Iterator[Any]:
        yield from pull(one)
        kept = one._kept()
        if kept is not None and kept.generation == one._mine.generation and one._given:
            store = one._kept.args[0]
            subscribers.replace(store, kept, vgtid=written(one.client.told))

    patch.setattr(Subscribed, "pull", acknowledged)


@of_streams
def a_subscriber_begins_where_it_began_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Subscribers, "acknowledge", lambda one, name, vgtid: True)


@of_streams
def a_stream_goes_on_when_another_one_has_its_name(patch: pytest.MonkeyPatch) -> None:
    look: Any = Subscribed._look

    def blind(one: Any) -> None:
        kept = one._kept()
        if kept is not None:
            one._mine = replace(one._mine, generation=kept.generation)
        look(one)

    patch.setattr(Subscribed, "_look", blind)


@of_streams
def two_streams_begin_a_name(patch: pytest.MonkeyPatch) -> None:
    added: Any = Subscribers._added

    def both(one: Any, name: str, asked: str, begins: Any) -> Any:
        found = added(one, name, asked, begins)
        return found or subscribers.find(one._store, name)

    patch.setattr(Subscribers, "_added", both)


@of_streams
def what_is_acknowledged_while_a_stream_opens_is_told_again(patch: pytest.MonkeyPatch) -> None:
    claimed: Any = Subscribers._claimed
    find: Any = Subscribers._find
    known: dict[str, str] = {}

    def first(one: Any, name: str, asked: str) -> Any:
        found = find(one, name, asked)
        if found is not None:
            known.setdefault(name, found.vgtid)
        return found

    def as_it_was(one: Any, name: str, asked: str, mine: Any) -> Any:
        found = claimed(one, name, asked, mine)
        return replace(found, vgtid=known.pop(name, found.vgtid))

    patch.setattr(Subscribers, "_find", first)
    patch.setattr(Subscribers, "_claimed", as_it_was)


@of_streams
def at_its_limit_a_stream_waits_for_what_it_gave_itself(patch: pytest.MonkeyPatch) -> None:
    acknowledge: Any = Subscribed._acknowledge

    def exactly(one: Any, up_to: Any) -> None:
        if any(given.stands == up_to for given in one._given):
            acknowledge(one, up_to)

    patch.setattr(Subscribed, "_acknowledge", exactly)


@of_streams
def a_subscriber_is_given_all_at_once(patch: pytest.MonkeyPatch) -> None:
    made: Any = Subscribed.__init__

    def unbound(one: Any, client: Any, size: Any, mine: Any, kept: Any, bytes_max: int) -> None:
        made(one, client, size, mine, kept, 1 << 60)

    patch.setattr(Subscribed, "__init__", unbound)


@of_streams
def whose_name_was_taken_is_told_to_go_on(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(calls._CODES, Why.TAKEN_OVER, calls._CODES[Why.OVERTAKEN])


@of_streams
def a_subscriber_may_not_ask_for_other_heartbeats(patch: pytest.MonkeyPatch) -> None:
    of: Any = Said.of

    def all_of_it(ask: Any) -> Any:
        return replace(of(ask), patterns=(str(ask.flags.heartbeat_interval),))

    patch.setattr(Said, "of", all_of_it)


# How shards are kept together.


@of_streams
def a_shard_is_left_out_of_the_alignment(patch: pytest.MonkeyPatch) -> None:
    answering: Any = Alignment._answering
    patch.setattr(
        Alignment, "_answering", lambda one, now: set(sorted(answering(one, now))[1:]) or answering(one, now)
    )


@of_streams
def all_wait_for_a_shard_that_is_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alignment, "_SILENT_SECONDS", float("inf"))


@of_streams
def all_wait_for_a_shard_at_rest(patch: pytest.MonkeyPatch) -> None:
    behind: Any = Alignment._behind

    def resting(one: Any, shard: str, told: Any, now: float) -> Any:
        found = behind(one, shard, told, now)
        if told is None:
            return one._come.get(shard, found)
        if len(told.groups) and told.held is None:
            return alignment._Come(told.event_time - one.ahead[shard], None)
        return found

    patch.setattr(Alignment, "_behind", resting)


@of_streams
def a_shard_that_came_too_far_is_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alignment, "over", lambda one, told, now: {})
    patch.setattr(Alignment, "until", lambda one, shards, now: dict.fromkeys(shards))


@of_streams
def aligned_shards_are_told_one_after_another(patch: pytest.MonkeyPatch) -> None:
    taken: Any = Epochs._taken

    def unaligned(one: Any, *args: Any, **named: Any) -> Any:
        turn = taken(one, *args, **named)
        return (
            None if turn is None else type(turn)(turn.stands, turn.shards, turn.completes, turn.empty, None)
        )

    patch.setattr(Epochs, "_taken", unaligned)


@of_streams
def clocks_of_servers_are_taken_for_equal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stream_shards, "clock_ahead", lambda endpoint: 0.0)
