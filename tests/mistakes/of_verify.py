"""Mistakes in verify and repair: what they compare, what they report, and what they write to repair it."""

from tests.mistakes.planted import Mistake

OF_VERIFY = (
    Mistake(
        name="a comparison asks again for chunks that are more than memory may hold",
        file="feed/verify.py",
        right="            planner.shrink(chunks)\n",
        wrong="            pass\n",
        found_by="promises/verify/test_crowded.py::test_it_is_compared_in_smaller_chunks",
    ),
    Mistake(
        name="a row with more changes than memory may hold is never compared",
        file="feed/verify.py",
        right=" or planner.is_least(chunks) else",
        wrong=" else",
        found_by="promises/verify/test_crowded.py::test_it_is_compared_in_smaller_chunks",
    ),
    Mistake(
        name="a sample takes 60 for a share of one, not for percent",
        file="model/sample.py",
        right="self.percent / 100 * (1 << _BITS)",
        wrong="self.percent * (1 << _BITS)",
        found_by="promises/verify/test_asked.py::test_a_sample_on_the_command_line",
    ),
    Mistake(
        name="verify ignores --seed",
        file="feed/compare.py",
        right="secrets.randbelow(_SEEDS) if seed is None else seed",
        wrong="secrets.randbelow(_SEEDS)",
        found_by="promises/verify/test_asked.py::test_a_sample_on_the_command_line",
    ),
    Mistake(
        name="a resumed verify forgets the differences found before",
        file="feed/verify_progress.py",
        right="Differences(one.missing, one.extra, one.changed, one.named)",
        wrong="Differences(named=one.named)",
        found_by="promises/verify/test_asked.py::test_one_that_is_interrupted_goes_on_where_it_stood",
    ),
    Mistake(
        name="a background verify that is complete still looks under way",
        file="watch/verified.py",
        right="self._keep(Verification(comparison, None, next_us))",
        wrong="self._keep(Verification(comparison, self.now.now, next_us))",
        found_by="promises/verify/test_background.py::test_equal_and_told_everywhere",
    ),
    Mistake(
        name="a background verify starts over at once",
        file="watch/verified.py",
        right="        return left\n",
        wrong="        return 0.0\n",
        found_by="promises/verify/test_background.py::test_equal_and_told_everywhere",
    ),
    Mistake(
        name="a portion of one shard takes all shards but that one",
        file="feed/portion.py",
        right='if self.portion.shard not in ("", shard):',
        wrong="if self.portion.shard == shard:",
        found_by="promises/verify/test_portions.py"
        "::test_it_is_mended_in_its_place_while_readers_see_the_newest_epoch",
    ),
    Mistake(
        name="a portion leaves out its first key",
        file="source/bounds.py",
        right='    text, values = _beyond(key.columns, bound, "<", "<")\n'
        '    return _one(session, table, key, (f" WHERE',
        wrong='    text, values = _beyond(key.columns, bound, "<=", "<")\n'
        '    return _one(session, table, key, (f" WHERE',
        found_by="promises/verify/test_portions.py"
        "::test_it_is_mended_in_its_place_while_readers_see_the_newest_epoch",
    ),
    Mistake(
        name="verify overlooks duplicate rows",
        file="rewind/compare.py",
        right="    matched[at[found]] = True\n",
        wrong="    matched[at[found]] = True\n    matched |= keys.KeySet(here).contains(there)\n",
        found_by="promises/verify/test_repair.py::test_without_a_run",
    ),
    Mistake(
        name="a repair leaves duplicate rows",
        file="rewind/compare.py",
        right="self.missing | self.changed | twice",
        wrong="self.missing | self.changed",
        found_by="promises/verify/test_repair.py::test_without_a_run",
    ),
    Mistake(
        name="a repair keeps rows that the source lacks",
        file="rewind/compare.py",
        right="        deleted = np.arange(rows.num_rows) >= comes.num_rows\n",
        wrong="        deleted = np.arange(rows.num_rows) > rows.num_rows\n",
        found_by="promises/verify/test_repair.py::test_without_a_run",
    ),
    Mistake(
        name="verify --since also compares everything else",
        file="feed/since.py",
        right="replace(copy, done=True)",
        wrong="copy",
        found_by="promises/verify/test_since.py"
        "::test_damage_in_what_changed_is_found_and_mended_and_nothing_else_is_looked_at",
    ),
    Mistake(
        name="GBK text in the log is decoded as Big5",
        file="wire/cells/charsets.py",
        right='"gbk": Pairs("gbk", ',
        wrong='"gbk": Pairs("big5", ',
        found_by="promises/verify/test_types.py::test_types_that_only_the_catalog_knows",
    ),
    Mistake(
        name="verify takes the rows of the last transaction from the log alone",
        file="readers/verify.py",
        right="read_group(task.copy, against_log=True)",
        wrong="read_group(task.copy)",
        found_by="promises/verify/test_unlogged.py::test_each_difference_is_found_or_counted",
    ),
    Mistake(
        name="verify reports a key whose last change may not be visible yet",
        file="rewind/unlogged.py",
        right="    unlogged = open_ & ~as_before\n",
        wrong="    unlogged = open_\n",
        found_by="promises/verify/test_unlogged.py::test_each_difference_is_found_or_counted",
    ),
    Mistake(
        name="an UPDATE looks like a DELETE and an INSERT to verify",
        file="rewind/unlogged.py",
        right="    absent[key[after & ~follows]] = True\n",
        wrong="    absent[key[after]] = True\n",
        found_by="layers/rewind/test_unlogged.py::test_each_key_is_judged_by_its_own_past",
    ),
    Mistake(
        name="verify judges a key that was changed again beyond its epoch",
        file="rewind/unlogged.py",
        right="    open_ = ~same & ~changed_later\n",
        wrong="    open_ = ~same\n",
        found_by="layers/rewind/test_unlogged.py::test_each_key_is_judged_by_its_own_past",
    ),
    Mistake(
        name="verify compares keys only",
        file="rewind/compare.py",
        right="    columns = source.schema.names\n",
        wrong="    columns = list(key)\n",
        found_by="promises/verify/test_verify.py::test_equal_under_writes_and_differences_named",
    ),
    Mistake(
        name="verify compares the source as it is now",
        file="readers/copy.py",
        right="    split = stretch.boundary if task.staged is None else stretch.groups\n",
        wrong="    split = stretch.groups\n",
        found_by="promises/verify/test_verify.py::test_equal_under_writes_and_differences_named",
    ),
    Mistake(
        name="a run only repairs the first part that differs",
        file="feed/repair.py",
        right="for chunks in verdict.differing]",
        wrong="for chunks in verdict.differing[:1]]",
        found_by="promises/verify/test_background.py::test_what_differs_is_mended",
    ),
    Mistake(
        name="verify --since includes the epoch itself",
        file="sink/delta/reading/changed_keys.py",
        right="WHERE {EPOCH} > {since}",
        wrong="WHERE {EPOCH} >= {since}",
        found_by="promises/verify/test_since.py"
        "::test_damage_in_what_changed_is_found_and_mended_and_nothing_else_is_looked_at",
    ),
    Mistake(
        name="verify --since overlooks deleted keys",
        file="sink/delta/reading/changed_keys.py",
        right="""parts = f"{keys(key_columns(now.shape), files)} UNION ALL {keys(shown, f'({now.sql()})')}\"""",
        wrong="""parts = keys(shown, f"({now.sql()})")""",
        found_by="promises/verify/test_since.py"
        "::test_damage_in_what_changed_is_found_and_mended_and_nothing_else_is_looked_at",
    ),
)
