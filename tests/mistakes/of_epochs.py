"""Mistakes in what makes every epoch exact: places in the log, what is visible, and statements as text."""

from tests.mistakes.planted import Mistake

OF_EPOCHS = (
    Mistake(
        name="rows after a damaged file are handed on before that is known",
        file="source/log.py",
        right="dumps.must_follow(dump)",
        wrong="pass",
        found_by="layers/source/test_damaged_file.py::test_no_row_after_the_damage_is_handed_on",
    ),
    Mistake(
        name="savepoints whose names differ in marks alone are two",
        file="wire/log/savepoint_names.py",
        right="        return without_case_and_marks\n",
        wrong="        return without_case\n",
        found_by="layers/wire/test_savepoint_names.py::test_a_log_with_names_of_other_case_and_marks",
    ),
    Mistake(
        name="log files are ordered by name and not by number",
        file="model/position.py",
        right="    left, right = (a.number, a.offset), (b.number, b.offset)\n",
        wrong="    left, right = (a.file, a.offset), (b.file, b.offset)\n",
        found_by="promises/exact/test_log_files.py::test_encrypted_files_across_the_step_to_one_digit_more",
    ),
    Mistake(
        name="two columns whose names differ only in case share a name in files",
        file="schema/shape.py",
        right="        taken.add(without_case(physical))\n",
        wrong="        taken.add(physical.lower())\n",
        found_by="promises/exact/test_names.py::test_columns_of_any_name",
    ),
    Mistake(
        name="on an idle source no floor is proven from the log in front of the cut",
        file="source/prove.py",
        right="            nearest = _at_rest(session, endpoint, server, floor, cut)\n",
        wrong="            return floor\n",
        found_by="layers/source/test_floor.py::"
        "test_a_transaction_is_proven_by_the_next_one_and_ddl_by_itself",
    ),
    Mistake(
        name="a snapshot proves nothing of the file that it stands in",
        file="epoch/seal.py",
        right="    whole = known is not None and known.file == snapshot.file and start != snapshot\n",
        wrong="    whole = False\n",
        found_by="promises/exact/test_rest_after_ddl.py::"
        "test_a_copy_and_verify_behind_a_last_ddl[ADD COLUMN]",
    ),
    Mistake(
        name="DDL that ends the log of a MariaDB is not taken for visible",
        file="epoch/seal.py",
        right="last.end if last.kind is GroupKind.COMPLETED_DDL else last.start",
        wrong="last.start",
        found_by="promises/exact/test_rest_after_ddl.py::"
        "test_a_table_that_ddl_made_stale_is_copied_again_at_rest[ORDER BY]",
    ),
    Mistake(
        name="in a new file of the log nothing is proven until a transaction follows",
        file="source/prove.py",
        right="    if last is None or not in_new_file:\n",
        wrong="    if True:\n",
        found_by="promises/exact/test_rest_after_ddl.py::"
        "test_a_table_that_ddl_made_stale_is_copied_again_at_rest[ORDER BY]",
    ),
    Mistake(
        name="rows spill to a file that outlives a killed task",
        file="rewind/spill.py",
        right='            self._file = tempfile.TemporaryFile(prefix="catchment-")  # noqa: SIM115\n',
        wrong='            self._file = tempfile.NamedTemporaryFile(prefix="catchment-")  # noqa: SIM115\n',
        found_by="promises/exact/test_spills.py::test_a_task_that_is_killed_leaves_no_rows_on_its_disk",
    ),
    Mistake(
        name="a statement logged as text is not followed into views and routines",
        file="schema/judge.py",
        right="    reach = reached(text.names, objects or Objects({}))\n",
        wrong="    reach = reached(text.names, Objects({}))\n",
        found_by="promises/exact/test_text.py::"
        "test_text_stops_its_shard_where_it_is_not_known_what_it_changed",
    ),
    Mistake(
        name="a column added AFTER another one is placed one column too far",
        file="schema/follow.py",
        right="    return names.index(place.lower()) + 1\n",
        wrong="    return names.index(place.lower()) + 2\n",
        found_by="promises/exact/test_undescribed.py::test_alters_at_other_epochs_and_a_restart_between",
    ),
    Mistake(
        name="a chunk is brought to the end of the log it read and not to the cut",
        file="rewind/states.py",
        right='    split = int(np.searchsorted(groups, boundary, side="left"))\n',
        wrong="    split = len(groups)\n",
        found_by="promises/hidden/test_random.py::test_every_cut_seal_and_chunk_is_right",
    ),
    Mistake(
        name="a log that ends before the cut passes for a complete one",
        file="readers/checks.py",
        right="    if stop is not None and not stretch.reached_stop:\n",
        wrong="    if stop is not None and not stretch.whole:\n",
        found_by="promises/hidden/test_stops.py::"
        "test_a_segment_stops_between_any_two_groups_and_nowhere_else",
    ),
    Mistake(
        name="partial updates of a JSON document change a copy that is thrown away",
        file="wire/json/diff.py",
        right="    root = node = _apart(root)\n",
        wrong="    node = _apart(root)\n",
        found_by="promises/mysql/test_feed.py::test_mysql_80_is_copied_under_writes_and_followed",
    ),
    Mistake(
        name="GTIDs with a tag count as plain ones",
        file="source/groups.py",
        right='gtid = UuidGtid(_uuid(group["uuid"]), group["tag"] or "", group["sequence"])',
        wrong='gtid = UuidGtid(_uuid(group["uuid"]), "", group["sequence"])',
        found_by="promises/mysql/test_feed.py::test_mysql_97_is_copied_under_writes_and_followed",
    ),
    Mistake(
        name="a lagging floor is reported as log that waits to be read",
        file="feed/planner.py",
        right="_MUCH_LOG if self._limits.marked else _FAR_FLOOR",
        wrong="_FAR_FLOOR if self._limits.marked else _MUCH_LOG",
        found_by="promises/mysql/test_held_copy.py::"
        "test_a_shard_whose_floor_stays_behind_is_told_and_copied_later",
    ),
    Mistake(
        name="a table with too many changes keeps the others of its group from being copied",
        file="readers/chunk_images.py",
        right="        if self.crowded.keys() == self.wanted.keys():\n",
        wrong="        if self.crowded:\n",
        found_by="promises/crash/test_work.py::"
        "test_a_table_that_changes_too_much_is_copied_in_smaller_chunks",
    ),
    Mistake(
        name="a table with too many changes gets no smaller chunks where others are in its group",
        file="feed/planner.py",
        right="        self.shrink([chunk for chunk, _ in receipt.refused if chunk.table in receipt.crowded])\n",
        wrong="",
        found_by="layers/feed/test_planner.py::"
        "test_a_table_with_too_many_changes_gets_smaller_chunks_and_no_other_does",
    ),
    Mistake(
        name="triggers are left out when a statement logged as text is judged",
        file="source/objects.py",
        right='    stored += [] if "TRIGGER" in lacking else _triggers(session)\n',
        wrong="",
        found_by="promises/statements/test_statements.py::test_no_statement_changes_a_chosen_row_and_passes",
    ),
    Mistake(
        name="without the privileges to see it, a statement as text ends the run wherever it writes",
        file="source/objects.py",
        right='(schema, kind) != (_WITHOUT_TRIGGERS, "BASE TABLE")',
        wrong="True",
        found_by="promises/exact/test_text.py::"
        "test_text_stops_its_shard_where_it_is_not_known_what_it_changed",
    ),
    Mistake(
        name="a view in schema mysql counts as a table there",
        file="source/objects.py",
        right='        return "SHOW VIEW" in lacking\n',
        wrong='        return "SHOW VIEW" in lacking and schema != _WITHOUT_TRIGGERS\n',
        found_by="layers/source/test_statements_as_text.py::"
        "test_text_in_schema_mysql_passes_with_the_privileges_that_the_docs_name[mariadb]",
    ),
    Mistake(
        name="on MariaDB a foreign key does not show without the privileges to see its rule",
        file="source/objects.py",
        right="_KEYS_OF_ANY_RULE if lacking else _KEYS",
        wrong="_KEYS",
        found_by="layers/source/test_statements_as_text.py::"
        "test_text_in_schema_mysql_passes_with_the_privileges_that_the_docs_name[mariadb]",
    ),
)
