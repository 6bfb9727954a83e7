"""Mistakes in erasing rows of a lake: what is left of them, and what goes with them."""

from tests.mistakes.planted import Mistake

OF_ERASURE = (
    Mistake(
        name="erasure overlooks the last key of a row group",
        file="sink/delta/erasure/sought.py",
        right="self._first[place] <= stats.max)",
        wrong="self._first[place] < stats.max)",
        found_by="promises/exact/test_erase.py::test_rows_leave_every_file_in_every_mode",
    ),
    Mistake(
        name="erasure refuses keys of which a history table has ended versions only",
        file="sink/delta/erasure/alive.py",
        right="_rows(directory, shape, live) if row[ENDED] is None}",
        wrong="_rows(directory, shape, live)}",
        found_by="promises/exact/test_erase.py::test_rows_leave_every_file_in_every_mode",
    ),
    Mistake(
        name="erasure shows up as a change in the change data",
        file="sink/delta/upkeep/erase.py",
        right="told = self._rewriting.untold(on) if live else []",
        wrong="told = self._rewriting.untold(on) if not live else []",
        found_by="promises/exact/test_erase.py::test_rows_leave_every_file_in_every_mode",
    ),
    Mistake(
        name="erasure leaves the values of its rows in the log's statistics",
        file="sink/delta/erasure/statistics.py",
        right="        if after != content:\n",
        wrong="        if len(after) != len(content):\n",
        found_by="layers/sink/test_erase.py::test_statistics_leave_entries_and_checkpoints",
    ),
    Mistake(
        name="a checkpoint does not look whether rows were erased while it was written",
        file="sink/delta/log/checkpoint.py",
        right="        if erasures(newest) == erasures(written):\n            return len(rows)\n",
        wrong="        return len(rows)\n",
        found_by="layers/sink/test_erase.py::test_a_checkpoint_that_is_written_late_brings_no_bound_back[False]",
    ),
    Mistake(
        name="an erasure is not counted in the log of a tail",
        file="sink/delta/upkeep/erase.py",
        right="            if first or found:\n                self._count(tail.log)\n",
        wrong="",
        found_by="layers/sink/test_erase.py::test_a_checkpoint_that_is_written_late_brings_no_bound_back[True]",
    ),
    Mistake(
        name="erasure leaves checksum files that list the erased values",
        file="sink/delta/erasure/statistics.py",
        right="    _delete_copies(log)\n    storage",
        wrong="    storage",
        found_by="layers/sink/test_erase.py::test_statistics_leave_entries_and_checkpoints",
    ),
    Mistake(
        name="erasure leaves staged rows",
        file="sink/delta/upkeep/erase.py",
        right="        delete(staged)\n",
        wrong="        exists(staged)\n",
        found_by="layers/sink/test_erase.py::test_rows_that_wait_for_their_cut_go",
    ),
    Mistake(
        name="erasure deletes rows of epochs that are not committed yet",
        file="sink/delta/upkeep/erase.py",
        right="names[path] in unsettled or _epoch_of(path) > self._epoch]",
        wrong="names[path] in unsettled]",
        found_by="layers/sink/test_erase.py::test_rows_of_later_epochs_stay",
    ),
    Mistake(
        name="erasure only searches files that the log names",
        file="sink/delta/upkeep/erase.py",
        right="plain = self._holding(data_files(self._plain.directory))",
        wrong="plain = self._holding(self._plain.directory / name for name in ever_named(self._plain.directory))",
        found_by="layers/sink/test_erase.py"
        "::test_attempts_that_lost_are_searched_and_what_cannot_be_read_is_named",
    ),
    Mistake(
        name="erasure with exact spelling erases other spellings, too",
        file="sink/delta/erasure/sought.py",
        right="_texts(shape) if erasure.spelling is not Spelling.EXACT else ()",
        wrong="_texts(shape)",
        found_by="layers/sink/test_erase.py::test_spellings_of_a_key",
    ),
    Mistake(
        name="erasure deletes files before it commits",
        file="sink/delta/upkeep/erase.py",
        right="        committed = self._commit(plain, first=first)\n",
        wrong="        self._delete(plain)\n        committed = self._commit(plain, first=first)\n",
        found_by="layers/sink/test_erase.py"
        "::test_one_that_dies_anywhere_leaves_a_lake_that_reads_right_and_is_gone_on_with[mirror]",
    ),
)
