"""Mistakes in streams and their servers: what clients receive, who reads for them, and how a stream ends."""

from tests.mistakes.planted import Mistake

OF_STREAMS = (
    Mistake(
        name="a row that changed twice after the cut is read as it was in between",
        file="rewind/states.py",
        right="first = beyond.take(pa.array(keys.first_of_each(encoded)))",
        wrong="first = beyond.take(pa.array(keys.last_of_each(encoded)))",
        found_by="layers/serve/test_source_batch.py::test_a_read_under_writes_is_the_state_at_one_moment",
    ),
    Mistake(
        name="the chunks of a batch are read as of its beginning",
        file="serve/spark_source/stream.py",
        right="                    state=end,\n",
        wrong="                    state=start,\n",
        found_by="layers/serve/test_source_stream.py::test_a_stream_is_resumed_and_repeated_exactly",
    ),
    Mistake(
        name="Arrow Flight does not tell how far a table is copied",
        file="serve/stream/batches_of.py",
        right="        yield LastPk(*name, table.id, copied.last)\n",
        wrong="",
        found_by="promises/serve/test_flight.py::test_copy_and_changes",
    ),
    Mistake(
        name="clients can read tables outside of the feed",
        file="serve/server/feeds.py",
        right="Limits(config.clients_max, config.buffer, config.slow), feed.tables)",
        wrong="Limits(config.clients_max, config.buffer, config.slow))",
        found_by="promises/serve/test_flight_served.py::test_a_table",
    ),
    Mistake(
        name="the page shows acknowledged bytes as not acknowledged",
        file="serve/hub/subscribed.py",
        right="Slip(len(given), self._bytes - self._acknowledged, ",
        wrong="Slip(len(given), self._acknowledged, ",
        found_by="promises/serve/test_page.py::test_who_reads_and_how_far",
    ),
    Mistake(
        name="a server reads 256 turns ahead for each client",
        file="serve/server/service.py",
        right="for message in pull():",
        wrong="for message in [one for _ in range(256) for one in pull()]:",
        found_by="promises/serve/test_pressure.py::test_who_does_not_read_is_not_pulled_for",
    ),
    Mistake(
        name="an unknown feed gets another answer than a wrong token",
        file="serve/server/feeds.py",
        right="        if served is None or not served.lock.opens(authorization):\n",
        wrong="        if served is None:\n"
        '            raise ConfigError(f"feed: there is no {feed}")\n'
        "        if not served.lock.opens(authorization):\n",
        found_by="promises/serve/test_refusals.py"
        "::test_a_wrong_token_and_an_unknown_feed_are_told_alike[who2]",
    ),
    Mistake(
        name="a server with one certificate speaks plain text",
        file="serve/server/server.py",
        right="            if certificates:\n",
        wrong="            if len(certificates) > 1:\n",
        found_by="promises/serve/test_refusals.py::test_tls",
    ),
    Mistake(
        name="the refusal of a token quotes it",
        file="serve/server/admission.py",
        right="    context.abort(grpc.StatusCode.UNAUTHENTICATED, CLOSED)\n",
        wrong="    given = authorization_of(context.invocation_metadata())\n"
        '    context.abort(grpc.StatusCode.UNAUTHENTICATED, f"{CLOSED}, not {given}")\n',
        found_by="promises/serve/test_refusals.py::test_no_secret_is_told",
    ),
    Mistake(
        name="clients of different tables share a reader",
        file="serve/hub/shared.py",
        right="    chosen: Chosen\n",
        wrong="    chosen: Chosen = field(compare=False)\n",
        found_by="promises/serve/test_shared.py::test_one_reader_for_all",
    ),
    Mistake(
        name="a reader's buffer is bounded by entries, not bytes",
        file="serve/hub/ring.py",
        right="while self._bytes > self._bytes_max and len(self._entries) > 1:",
        wrong="while len(self._entries) > self._bytes_max:",
        found_by="promises/serve/test_shared.py::test_a_slow_client[Slow.GAP]",
    ),
    Mistake(
        name="one client too many reads on its own",
        file="serve/hub/turnstile.py",
        right="len(inside) + ahead < self._most and",
        wrong="len(inside) + ahead <= self._most and",
        found_by="promises/serve/test_shared.py::test_few_read_by_themselves_at_a_time",
    ),
    Mistake(
        name="updates over gRPC lack the row before",
        file="serve/server/rows.py",
        right="        return SerializedRow((name, table), before, after)\n",
        wrong="        return SerializedRow((name, table), before if after is None else None, after)\n",
        found_by="promises/serve/test_streams.py::test_the_same_events_as_in_python",
    ),
    Mistake(
        name="a server that stops ends its streams as if they were complete",
        file="serve/server/service.py",
        right="            end = self._end_by(fault, request)\n        context",
        wrong="            end = self._end_by(fault, request)\n        if end is not STOPPED:\n            context",
        found_by="promises/serve/test_streams.py::test_sigterm_ends_streams_and_another_server_goes_on",
    ),
    Mistake(
        name="acknowledging an old vgtid rewinds a subscriber",
        file="serve/hub/subscribers.py",
        right="            if not self._is_later(name, kept, given):\n                return False\n",
        wrong="",
        found_by="promises/serve/test_subscribers.py::test_what_is_not_acknowledged_comes_again",
    ),
    Mistake(
        name="a stream tells changes of rows that are not copied yet",
        file="serve/stream/kept_images.py",
        right="followed = None if copy is None else follows_log(images, chunk_key(version), copy)",
        wrong="followed = None",
        found_by="promises/stream/test_every_vgtid.py::test_under_load_and_kills",
    ),
    Mistake(
        name="the last key of a chunk comes after its commit",
        file="serve/stream/events_of.py",
        right="        yield LastPk(*name, table.id, copied.last)\n        yield Commit(*name)\n",
        wrong="        yield Commit(*name)\n        yield LastPk(*name, table.id, copied.last)\n",
        found_by="promises/stream/test_examples.py::test_copy_two_tables_from_two_shards",
    ),
    Mistake(
        name="a lost connection passes for a refusal",
        file="source/session.py",
        right="_LOST = {2002, 2003, 2006, 2013, 2055, ",
        wrong="_LOST = {2002, 2003, 2055, ",
        found_by="promises/stream/test_hostile.py::test_a_server_that_dies_and_comes_back",
    ),
    Mistake(
        name="a rule's condition is not applied to copied rows",
        file="serve/rules/selection.py",
        right="return self._given(rows if taken is None else rows.filter(pa.array(taken)))",
        wrong="return self._given(rows)",
        found_by="promises/stream/test_rules.py::test_two_tables_as_seed_004_has_them",
    ),
    Mistake(
        name="aligned shards come one after the other",
        file="serve/stream/spans.py",
        right="    if turn.ahead is None:\n",
        wrong="    if turn.ahead is None or len(turn.ahead) > 1:\n",
        found_by="promises/stream/test_skew.py::test_a_backlog_of_a_lagging_shard[True-True]",
    ),
    Mistake(
        name="a stream that is to copy starts at the current position",
        file="serve/stream/begin.py",
        right="    if start.gtid == CURRENT:\n",
        wrong="    if start.gtid in (COPY, CURRENT):\n",
        found_by="promises/stream/test_starts.py::test_copy_of_two_tables_from_two_shards",
    ),
    Mistake(
        name="a resumed stream copies its tables again",
        file="serve/stream/resume.py",
        right="copies = (Copy(copy.table) if copy.table in tables else copy for copy in state.copies)",
        wrong="copies = (Copy(copy.table) for copy in state.copies)",
        found_by="promises/stream/test_starts.py::test_resumed_from_the_last_vgtid",
    ),
)
