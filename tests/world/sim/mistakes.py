"""Mistakes to plant in the product's own rules: what a simulator that finds none of them is worth is nothing.

Each takes a rule away by patching the function that is the rule, where it is used.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from catchment import world
from catchment.epoch import gather
from catchment.epoch.seal import newest_sealed
from catchment.epoch.xa import Commits
from catchment.feed import clock, loop, lost_logs, shard_reader
from catchment.feed import unmoved as unmoved_module
from catchment.model.chunk import chunk_key
from catchment.model.errors import Purged
from catchment.model.image import DELETED
from catchment.model.position import LogOffset
from catchment.readers import changes, checks, copy, segment_images
from catchment.rewind import states
from catchment.rewind.ranges import follows_log
from catchment.source import dumps, first_cut, log, prove
from catchment.source.bounds import newest_key
from catchment.source.catalog import list_tables, read_table
from catchment.source.log import read_log
from catchment.source.offsets import ask_resets
from catchment.source.session import connect
from catchment.state.store import Store
from catchment.wire.log.decoder import LogDecoder
from tests.world.sim.session import Network
from tests.world.sim.sink import SimSink

Plant = Callable[[pytest.MonkeyPatch], None]
MISTAKES: dict[str, Plant] = {}


def mistake(plant: Plant) -> Plant:
    """Add a mistake under the name of its function."""
    MISTAKES[plant.__name__] = plant
    return plant


@mistake
def the_floor_of_chunks_is_the_cut_though_it_is_not_sealed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copy, "proven_floor", lambda endpoint, server, floor, cut, worth: cut)


@mistake
def the_floor_is_proven_after_the_select(patch: pytest.MonkeyPatch) -> None:
    behind: Any = copy._log_behind

    def late(task: Any, floor: LogOffset, *rest: Any) -> Any:
        return behind(task, prove.proven_floor(task.endpoint, task.server, floor, task.epoch_at), *rest)

    patch.setattr(copy, "proven_floor", lambda endpoint, server, floor, cut, worth: floor)
    patch.setattr(copy, "_log_behind", late)


@mistake
def the_log_behind_chunks_ends_where_it_did_before_the_select(patch: pytest.MonkeyPatch) -> None:
    select: Any = copy._select_all
    read: Any = read_log
    ends: dict[Any, LogOffset] = {}

    def first_the_end(task: Any, shapes: Any) -> Any:
        network = world.servers()
        assert isinstance(network, Network)
        number, offset = network.by_port[task.endpoint.port].end()
        ends[task.chunks] = LogOffset(f"binlog.{number:06}", offset)
        task_of[0] = task.chunks
        return select(task, shapes)

    task_of: list[Any] = [None]

    def up_to_there(endpoint: Any, server: Any, start: Any, stop: Any, *rest: Any, **named: Any) -> Any:
        return read(endpoint, server, start, stop or ends[task_of[0]], *rest, **named)

    patch.setattr(copy, "_select_all", first_the_end)
    patch.setattr(copy, "read_log", up_to_there)


@mistake
def chunks_are_not_rewound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copy, "rewound", lambda rows, touched, key: rows)


@mistake
def chunks_are_brought_to_the_end_of_the_log_instead_of_the_cut(patch: pytest.MonkeyPatch) -> None:
    at: Any = states.states_at
    patch.setattr(copy, "states_at", lambda images, key, boundary: at(images, key, 1 << 60))


@mistake
def rows_of_xa_count_where_they_were_prepared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(changes, "commits", lambda shard, known, groups: Commits({}, ()))


@mistake
def what_xa_recover_lists_is_taken_for_visible(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checks, "hidden_from", lambda prepared, recovered: None)


@mistake
def a_snapshot_that_may_be_torn_proves_what_lies_before_it(patch: pytest.MonkeyPatch) -> None:
    def newest(known: Any, start: Any, snapshot: Any, last: Any, checkpoints: Any, **named: Any) -> Any:
        return last.start if last is not None else known

    patch.setattr(prove, "newest_sealed", newest)


@mistake
def the_last_group_of_a_snapshot_is_taken_for_visible(patch: pytest.MonkeyPatch) -> None:
    real: Any = newest_sealed

    def newest(known: Any, start: Any, snapshot: Any, last: Any, checkpoints: Any, **named: Any) -> Any:
        return snapshot if known is not None else real(known, start, snapshot, last, checkpoints, **named)

    patch.setattr(prove, "newest_sealed", newest)


@mistake
def groups_that_a_crash_cut_off_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(changes, "without_voids", lambda images, voids: images)


@mistake
def deletes_are_lost_in_the_net(patch: pytest.MonkeyPatch) -> None:
    states_of: Any = states.states_of

    def kept(last: pa.Table) -> pa.Table:
        found = states_of(last)
        return found.filter(pc.invert(found.column(DELETED)))

    patch.setattr(changes, "states_of", kept)


@mistake
def the_first_image_of_a_key_counts_instead_of_the_last(patch: pytest.MonkeyPatch) -> None:
    def first(images: pa.Table, key: tuple[str, ...]) -> pa.Table:
        return states.last_images(images.take(pa.array(range(images.num_rows - 1, -1, -1))), key)

    patch.setattr(changes, "last_images", first)


@mistake
def changes_of_rows_that_are_not_copied_yet_are_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment_images, "follows_log", lambda images, key, progress: None)


@mistake
def changes_of_rows_that_were_born_later_are_left_out(patch: pytest.MonkeyPatch) -> None:
    follows: Any = follows_log

    def copied_alone(images: Any, key: Any, progress: Any) -> Any:
        return follows(images, key, msgspec.structs.replace(progress, born_after=None))

    patch.setattr(segment_images, "follows_log", copied_alone)


@mistake
def progress_goes_beyond_what_was_delivered(patch: pytest.MonkeyPatch) -> None:
    accept: Any = gather._accept

    def all_planned(copies: Any, altered: Any) -> Any:
        accepted = accept(copies, altered)
        for chunk, _ in accepted.refused:
            accepted.chunks.setdefault(chunk.of, []).append((chunk, 0))
        return accepted

    patch.setattr(gather, "_accept", all_planned)


@mistake
def the_largest_key_is_read_before_the_cut_is_sealed(patch: pytest.MonkeyPatch) -> None:
    shard_origin: Any = first_cut.origin_of
    newest: Any = newest_key

    def early(endpoint: Any, chosen: Any, reserved: Any, **how: Any) -> Any:
        known: dict[Any, Any] = {}
        with connect(endpoint) as session:
            for table in list_tables(session, chosen):
                key = chunk_key(read_table(session, table))
                known[endpoint.shard, table] = newest(session, table, key)
        world.sleep(0.5)
        keys.update(known)
        return shard_origin(endpoint, chosen, reserved, **how)

    keys: dict[Any, Any] = {}
    patch.setattr(first_cut, "origin_of", early)
    patch.setattr(first_cut, "newest_key", lambda session, table, key: keys[session.endpoint.shard, table])


@mistake
def what_a_lost_epoch_left_is_not_taken_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Store, "put_manifest", lambda store, manifest, fence: None)
    patch.setattr(SimSink, "restore", lambda sink, row, fence, applies: row.manifest.epoch)


@mistake
def nobody_looks_at_the_fence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimSink, "_fenced", staticmethod(lambda known, fence: None))
    patch.setattr(Store, "guard", lambda store, connection, fence: None)
    patch.setattr("catchment.state.lease.Lease.check", lambda lease: None)
    patch.setattr("catchment.state.lease.Lease._renew", lambda lease: None)


@mistake
def inline_rows_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    complete: Any = SimSink.complete

    def without(sink: SimSink, epoch: int, gathered: Any) -> Any:
        return complete(sink, epoch, replace(gathered, outputs=gathered.outputs[:-1]))

    patch.setattr(SimSink, "complete", without)


@mistake
def a_dump_that_ends_early_is_taken_for_the_end_of_the_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dumps, "_is_end", lambda decoder, end, dumps: True)


@mistake
def shards_that_have_moved_are_taken_for_unmoved(patch: pytest.MonkeyPatch) -> None:
    unmoved: Any = unmoved_module.unmoved
    inherited: Any = unmoved_module.inherited

    def most(standing: Any, tick: Any) -> tuple[str, ...]:
        first = next(iter(tick.offsets))
        return (first,) if standing.shards[first].copied else unmoved(standing, tick)

    def at_the_tick(standing: Any, still: Any, clock: Any, endpoints: Any) -> Any:
        found = inherited(standing, still, clock, endpoints)
        return [_moved(receipt) for receipt in found]

    def _moved(receipt: Any) -> Any:
        network = world.servers()
        assert isinstance(network, Network)
        server = next(s for s in network.by_port.values() if s.name == receipt.shard)
        number, offset = server.end()
        at = LogOffset(f"binlog.{number:06}", offset)
        return replace(receipt, reached=msgspec.structs.replace(receipt.reached, at=at))

    patch.setattr(loop, "unmoved", most)
    patch.setattr(loop, "inherited", at_the_tick)


@mistake
def chunks_of_a_shard_that_did_not_arrive_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gather, "_of_arrived", lambda copies, arrived: copies)


@mistake
def an_absent_shard_is_taken_to_have_reached_the_tick(patch: pytest.MonkeyPatch) -> None:
    manifest: Any = gather.manifest

    def at_the_tick(previous: Any, plan: Any, gathered: Any, files: Any, absent: Any) -> Any:
        made = manifest(previous, plan, gathered, files, absent)
        offsets = {shard: at for shard, at in plan.tick.offsets.items() if shard in absent}
        states = dict(made.cut.shards)
        for shard, at in offsets.items():
            position = msgspec.structs.replace(states[shard].position, at=at, event=None)
            states[shard] = msgspec.structs.replace(states[shard], position=position)
        cut = msgspec.structs.replace(made.cut, shards=states)
        return msgspec.structs.replace(made, cut=cut)

    patch.setattr(loop, "manifest", at_the_tick)


@mistake
def a_reset_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    for module in (copy, shard_reader):
        patch.setattr(module, "must_be_same_log", _asks_only)
    patch.setattr(changes, "same_log", _asks_only_in_its_session)
    patch.setattr(lost_logs, "must_go_on", _asks_only)
    patch.setattr(unmoved_module, "must_be_unbroken", lambda endpoint, verified, now: None)
    for module in (checks, shard_reader):
        patch.setattr(module, "must_continue", lambda shard, start, born, first: None)
    patch.setattr(log, "LogDecoder", lambda *args, **named: LogDecoder(*args, **{**named, "behind": None}))


def _asks_only(endpoint: Any, verified: Any) -> Any:
    with connect(endpoint, verified.server) as session:
        return ask_resets(session)


def _asks_only_in_its_session(endpoint: Any, verified: Any) -> Any:
    session = connect(endpoint, verified.server)
    return session, ask_resets(session)


@mistake
def a_reset_behind_the_select_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copy, "must_be_same_log", _asks_only)


@mistake
def a_purged_floor_ends_the_run(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(copy, "CutMissed", Purged)
    patch.setattr(copy, "floor_behind_purge", lambda *_: None)


@mistake
def what_an_xa_commit_takes_away_behind_the_first_cut_is_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    left: Any = first_cut._left_by_rows

    def by_images(endpoint: Any, position: Any, stretches: Any, *rest: Any) -> Any:
        behind = [one for one in stretches if one == (position.at, None)]
        return left(endpoint, position, behind, *rest)

    patch.setattr(first_cut, "_left_by_rows", by_images)


@mistake
def numbers_of_epochs_follow_a_clock_that_goes_back(patch: pytest.MonkeyPatch) -> None:
    def of_the_clock(first: Any, *rest: Any) -> Any:
        return rest[0] if rest and first > 1 << 40 else max(first, *rest)

    patch.setattr(clock, "max", of_the_clock, raising=False)
