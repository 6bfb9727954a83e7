"""Mistakes in operating a feed: how runs begin and end, what they tell, and how they obey."""

from tests.mistakes.planted import Mistake

OF_OPERATIONS = (
    Mistake(
        name="a run does not wait for its state store",
        file="state/patience.py",
        right="            if patience is None or patience.stop.is_set():\n",
        wrong="            if patience is None or not patience.stop.is_set():\n",
        found_by="promises/crash/test_store_away.py::test_a_state_store_that_is_cut_off_and_comes_back",
    ),
    Mistake(
        name="a run that left tables behind has the exit code of one that did not",
        file="cli/run.py",
        right="return LEFT_BEHIND if outcome.left else 0",
        wrong="return 0 if outcome.left else 0",
        found_by="promises/crash/test_work.py::test_a_table_altered_in_no_log_is_named_and_the_others_go_on",
    ),
    Mistake(
        name="a password file is read once",
        file="config/values.py",
        right="            return _read_file(self._path)\n        except",
        wrong="            return self.get_secret_value()\n        except",
        found_by="promises/crash/test_login.py::test_a_password_that_is_rotated",
    ),
    Mistake(
        name="a refused login ends the run",
        file="source/session.py",
        right="        with mapped(endpoint, LoginRefused):\n",
        wrong="        with mapped(endpoint):\n",
        found_by="promises/crash/test_login.py::test_a_password_that_is_rotated",
    ),
    Mistake(
        name="an object store that does not answer has damaged files",
        file="sink/storage/refused.py",
        right="    if isinstance(error, StorageAway):\n",
        wrong="    if isinstance(error, FileNotFoundError):\n",
        found_by="promises/crash/test_objects.py::test_a_store_that_is_gone_for_longer_than_requests_are_repeated",
    ),
    Mistake(
        name="the status page answers unknown paths",
        file="page/routes.py",
        right="            case path if path in _FILES:\n                return file_answer(path)\n",
        wrong="            case path:\n                return file_answer(path if path in _FILES else '/')\n",
        found_by="layers/page/test_page.py::test_what_it_shows_of_a_run",
    ),
    Mistake(
        name="a full disk passes for a bug",
        file="sink/delta/files.py",
        right="    except (OSError, pa.ArrowException) as error:\n"
        '        raise refused(error, f"cannot write {target}: {error}; check space and rights there") from error\n'
        "\n\ndef replace_bytes",
        wrong="    except pa.ArrowException as error:\n"
        '        raise refused(error, f"cannot write {target}: {error}; check space and rights there") from error\n'
        "\n\ndef replace_bytes",
        found_by="promises/bad_input/test_places.py::test_a_disk_that_fills_up_in_an_epoch",
    ),
    Mistake(
        name="a run takes the lease from a live runner",
        file="state/lease.py",
        right="    return row.owner is not None and not row.owner.is_dead()\n",
        wrong="    return row.owner is not None and row.owner.is_dead()\n",
        found_by="promises/bad_input/test_places.py::test_a_feed_that_is_run_already",
    ),
    Mistake(
        name="row events that lack columns are skipped",
        file="readers/checks.py",
        right="if isinstance(fact, PartialImage) and fact.table not in aside:",
        wrong="if isinstance(fact, PartialImage) and fact.table in aside:",
        found_by="promises/bad_input/test_source.py"
        "::test_one_session_that_logs_less_than_whole_rows_stops_the_feed_before_harm[minimal]",
    ),
    Mistake(
        name="Java 1.8 is taken for Java 1",
        file="engine/java.py",
        right="""version "(?:1\\.)?(\\d+)')""",
        wrong="""version "(\\d+)')""",
        found_by="promises/bad_input/test_spark.py::test_a_java_that_is_not_there_or_too_old",
    ),
    Mistake(
        name="a run claims to follow a setting that cannot change while it runs",
        file="feed/edition.py",
        right="        if later:\n            said = f",
        wrong="        if not later:\n            said = f",
        found_by="promises/exact/test_applied.py::test_a_run_goes_by_another_feed_file",
    ),
    Mistake(
        name="a run cannot begin while a shard is unreachable",
        file="feed/take_up.py",
        right="spare = isinstance(decision, Continue) and feed.epoch.away_max > 0",
        wrong="spare = isinstance(decision, Fresh) and feed.epoch.away_max > 0",
        found_by="promises/exact/test_away.py::test_the_others_go_on_and_it_catches_up",
    ),
    Mistake(
        name="copy.first is ignored",
        file="feed/planner.py",
        right="                self._limits.place_of(copy.table),\n",
        wrong="",
        found_by="promises/exact/test_copy_order.py::test_a_table_waits_for_those_before_it",
    ),
    Mistake(
        name="a server at another address passes for another server",
        file="source/session.py",
        right="    return Server(int(server_id), str(hostname), int(port), *map(str, uuid))\n",
        wrong="    return Server(int(server_id), session.endpoint.host, session.endpoint.port, *map(str, uuid))\n",
        found_by="promises/exact/test_endpoint.py"
        "::test_a_feed_goes_on_at_another_address_of_the_same_server[mariadb]",
    ),
    Mistake(
        name="tables of a shard whose log is lost are copied again without an order",
        file="epoch/begun_again.py",
        right="    waits = any(one.waits for one in shards.values())\n",
        wrong="    waits = not any(one.waits for one in shards.values())\n",
        found_by="promises/exact/test_lost_log.py"
        "::test_the_tables_of_the_shard_stand_still_until_an_order_copies_them_again",
    ),
    Mistake(
        name="the log does not say that a shard answers again",
        file="watch/troubles.py",
        right="        if known.logged:\n",
        wrong="        if not known.logged:\n",
        found_by="promises/exact/test_night.py::test_a_shard_that_is_away_for_a_while",
    ),
    Mistake(
        name="the lag of a shard that is away is that of the others",
        file="watch/metrics.py",
        right="self._absent_since.get(shard, self._cut_at))\n\n    def retention",
        wrong="self._cut_at)\n\n    def retention",
        found_by="promises/exact/test_night.py::test_a_shard_that_is_away_for_a_while",
    ),
    Mistake(
        name="a feed without one of its shards is ready",
        file="page/board.py",
        right="            self._readiness.rested(rest.absent.keys())\n",
        wrong="            self._readiness.rested(())\n",
        found_by="promises/exact/test_night.py::test_a_shard_that_is_away_for_a_while",
    ),
    Mistake(
        name="status omits the error that ended a run",
        file="watch/watch.py",
        right="            self.journal.end(code, note)\n",
        wrong="            self.journal.end(code, None)\n",
        found_by="promises/exact/test_night.py::test_a_feed_that_ends_by_an_error_says_so_everywhere",
    ),
    Mistake(
        name="no notice of a table that is not carried",
        file="watch/uncarried.py",
        right="            self._notifier.tell(NotifyEvent.NEW_TABLE, message)\n",
        wrong="",
        found_by="promises/exact/test_night.py::test_a_table_created_while_a_glob_takes_it_is_told_at_once",
    ),
    Mistake(
        name="a table that is copied can be resumed",
        file="epoch/obey.py",
        right="in _THERE_ALREADY.get(order.action, ()) or _CAUSES[order.action] in MOVES[state]:",
        wrong="in _THERE_ALREADY.get(order.action, ()) or state is not TableState.WAITING:",
        found_by="promises/exact/test_orders.py::test_orders_to_a_run",
    ),
    Mistake(
        name="an order without a shard applies to no shard",
        file="epoch/obey.py",
        right="        if not shard or name == shard:\n",
        wrong="        if name == shard:\n",
        found_by="promises/exact/test_orders.py::test_orders_without_a_run",
    ),
    Mistake(
        name="the forecast counts copied keys as left",
        file="watch/rows_left.py",
        right="keys, seen = end - last.key, last.key - first.key",
        wrong="keys, seen = end - first.key, last.key - first.key",
        found_by="promises/exact/test_progress.py::test_what_is_said_at_a_quarter_is_near_the_truth",
    ),
    Mistake(
        name="status shows the forecast of a run that has ended",
        file="watch/status.py",
        right="    if lives and journal.progress is not None:\n",
        wrong="    if journal.progress is not None:\n",
        found_by="promises/exact/test_progress.py::test_status_tells_it_of_a_run_and_of_none",
    ),
    Mistake(
        name="an order to skip something that was read already is called done",
        file="epoch/skips.py",
        right='        return Answer(False, f"nothing there stops',
        wrong='        return Answer(True, f"nothing there stops',
        found_by="promises/exact/test_set_aside.py::test_the_tables_that_it_touched_are_copied_again",
    ),
    Mistake(
        name="a setting that is back at the feed file's value stays listed as changed",
        file="feed/live.py",
        right="        if value != of_file:\n",
        wrong="        if value != setting_text(self._feed, name):\n",
        found_by="promises/exact/test_set_live.py::test_settings_of_a_copy_that_runs",
    ),
    Mistake(
        name="a changed setting is lost at the next run",
        file="feed/live.py",
        right="            if now != one.file_value:\n",
        wrong="            if now != one.value:\n",
        found_by="promises/exact/test_set_live.py"
        "::test_a_later_run_goes_by_it_until_the_file_says_another_value",
    ),
    Mistake(
        name="a throttled shard is still copied",
        file="feed/planner.py",
        right="                if shard not in self.throttled:\n",
        wrong="                if shard not in self.held:\n",
        found_by="promises/exact/test_throttle.py::test_a_flag_file_and_all_that_tells_of_it",
    ),
    Mistake(
        name="a corrupt log has the exit code of an unreachable shard",
        file="model/errors.py",
        right="    exit_code = 4\n",
        wrong="    exit_code = 3\n",
        found_by="promises/install/test_unit.py::test_what_is_worth_a_restart",
    ),
)
