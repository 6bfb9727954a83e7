"""Mistakes that show in seeds of a setting alone: where tables are truncated, where log files go, and where logs change
their names."""

from typing import Any

import msgspec
import pytest

from catchment.epoch import gather, xa
from catchment.feed import entering, lost_logs, shard_reader
from catchment.model.position import LogOffset, reaches
from catchment.readers import changes, chunk_images, copy
from catchment.schema import shape
from catchment.source.log import read_facts
from catchment.source.log_names import rest_of_name
from catchment.source.offsets import log_files
from catchment.source.session import connect
from tests.world.sim.mistakes import Plant

# Those that show where tables are truncated, in seeds that do that.
OF_TRUNCATES: dict[str, Plant] = {}
OF_PURGES: dict[str, Plant] = {}
OF_RENAMES: dict[str, Plant] = {}


def of_truncates(plant: Plant) -> Plant:
    """Add such a mistake under the name of its function."""
    OF_TRUNCATES[plant.__name__] = plant
    return plant


@of_truncates
def a_table_that_stopped_goes_on_without_the_epochs_changes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gather, "_stopped", lambda segments: {})


@of_truncates
def chunks_pass_over_a_truncate(patch: pytest.MonkeyPatch) -> None:
    spoiled: Any = chunk_images.spoiled_by

    def less(*args: Any) -> dict[Any, str]:
        return {table: why for table, why in spoiled(*args).items() if "definition changed" not in why}

    patch.setattr(copy, "spoiled_by", less)


@of_truncates
def rows_in_front_of_a_truncate_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(changes, "behind", lambda images, group: images)


@of_truncates
def a_truncate_takes_no_row_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shape, "_emptied", lambda known, shard, epoch: known)


@of_truncates
def chunks_are_rewound_over_a_truncate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chunk_images.ChunkImages, "forget", lambda images, table, group: None)


@of_truncates
def a_new_copy_is_seen_before_it_is_complete(patch: pytest.MonkeyPatch) -> None:
    stale: Any = gather._stale

    def early(previous: Any, plan: Any, cut: Any, reasons: Any, *rest: Any) -> Any:
        copied = {one.table for one in cut.copies}
        return tuple(one for one in stale(previous, plan, cut, reasons, *rest) if one.table not in copied)

    patch.setattr(gather, "_stale", early)


@of_truncates
def a_stale_table_stands_as_of_the_epoch_of_its_statement(patch: pytest.MonkeyPatch) -> None:
    stale: Any = gather._stale

    def late(previous: Any, plan: Any, cut: Any, reasons: Any, *rest: Any) -> Any:
        found = stale(previous, plan, cut, reasons, *rest)
        return tuple(
            msgspec.structs.replace(one, epoch=plan.epoch) if one.table in reasons else one for one in found
        )

    patch.setattr(gather, "_stale", late)


@of_truncates
def a_new_copy_goes_where_the_old_one_is(patch: pytest.MonkeyPatch) -> None:
    begun: Any = entering._epoch_with

    def over(standing: Any, known: Any, states: Any) -> Any:
        manifest = begun(standing, known, states)
        shapes = tuple(msgspec.structs.replace(one, generation=0) for one in manifest.shapes)
        deltas = tuple(
            msgspec.structs.replace(one, shape=msgspec.structs.replace(one.shape, generation=0))
            for one in manifest.deltas
        )
        return msgspec.structs.replace(manifest, shapes=shapes, deltas=deltas)

    patch.setattr(entering, "_epoch_with", over)


def of_purges(plant: Plant) -> Plant:
    """Add such a mistake under the name of its function."""
    OF_PURGES[plant.__name__] = plant
    return plant


@of_purges
def a_purged_file_is_passed_over_though_it_held_groups(patch: pytest.MonkeyPatch) -> None:
    def at_the_oldest(endpoint: Any, verified: Any) -> Any:
        with connect(endpoint, verified.server) as session:
            names = list(log_files(session))
        if verified.at.file in names:
            return verified
        oldest = LogOffset(names[0], 4)
        head = read_facts(endpoint, verified.server, oldest, None, budget=1)
        return msgspec.structs.replace(verified, at=oldest, born=head.files[0].born, event=None)

    patch.setattr(lost_logs, "continued", at_the_oldest)


def of_renames(plant: Plant) -> Plant:
    """Add such a mistake under the name of its function."""
    OF_RENAMES[plant.__name__] = plant
    return plant


@of_renames
def a_log_with_another_name_is_taken_for_another_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shard_reader, "end_of_name", lambda endpoint, verified, files: None)


@of_renames
def half_a_group_is_taken_for_the_end_of_a_name(patch: pytest.MonkeyPatch) -> None:
    def at_its_size(endpoint: Any, verified: Any, files: Any) -> Any:
        found = rest_of_name(files, verified.at.file)
        return None if found is None else LogOffset(found[0][-1], files[found[0][-1]])

    patch.setattr(shard_reader, "end_of_name", at_its_size)


@of_renames
def a_cut_skips_from_the_old_name_of_a_log_to_the_new_one(patch: pytest.MonkeyPatch) -> None:
    real: Any = shard_reader.ShardReader.accept

    def accept(self: Any, offset: LogOffset) -> LogOffset | None:
        found: LogOffset | None = real(self, offset)
        return offset if found is not None and found == self.name_ends else found

    patch.setattr(shard_reader.ShardReader, "accept", accept)


@of_renames
def a_commit_does_not_find_its_prepare_under_another_name(patch: pytest.MonkeyPatch) -> None:
    real: Any = xa.preparation

    def found(known: Any, end: Any) -> Any:
        return real([one for one in known if reaches(end.start, one.end)], end)

    patch.setattr(xa, "preparation", found)
