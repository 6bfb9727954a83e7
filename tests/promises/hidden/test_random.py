"""Cuts, seals and chunks of a server whose commits are held at random beside free writers, judged against its log."""

import pytest

from catchment.demo.server import PrivateServer
from tests.promises.hidden.conftest import with_tables
from tests.promises.hidden.follow import Follower
from tests.promises.hidden.judge import judge, take_base
from tests.promises.hidden.source import under_holds


def must_be_right(server: PrivateServer, events: int, *, filling: int, seed: int) -> None:
    """Go on until so many holds in which a commit was seen waiting were met, and a fifth as many of them with FLUSH.
    `filling`: the size of rows that help to fill a file of the log."""
    redo = "innodb_flush_log_at_trx_commit"
    before = server.sql(f"SELECT @@{redo}")[0][0]
    # Checkpoint events follow a rotation at once, not once a second.
    server.sql(f"SET GLOBAL {redo} = 1")
    try:
        with with_tables(server):
            base = take_base(server)
            with under_holds(server, seed, filling=filling, flush_share=0.25, xa_share=0.2) as holder:
                follower = Follower(server)
                try:
                    cuts = 0
                    while holder.held < events or holder.flushed < events // 5 or cuts < 10 * events:
                        cuts += follower.step(with_chunks=cuts % 5 == 0)
                finally:
                    follower.close()
            verdict = judge(server, base, follower.seen)
    finally:
        server.sql(f"SET GLOBAL {redo} = {before}")
    assert verdict.wrong_chunks == []
    assert verdict.wrong_claims == []
    assert verdict.wrong_segments == []
    assert verdict.chunks >= 5 * events
    assert verdict.claims >= events // 5


@pytest.mark.promise("cuts and chunks are right while commits are held at random")
def test_every_cut_seal_and_chunk_is_right(small: PrivateServer) -> None:
    must_be_right(small, 10, filling=5000, seed=1)


def test_those_in_larger_files_are(large: PrivateServer) -> None:
    must_be_right(large, 10, filling=150_000, seed=3)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_those_of_a_very_long_run_are(small: PrivateServer, large: PrivateServer) -> None:
    must_be_right(small, 2000, filling=5000, seed=7)
    must_be_right(large, 1000, filling=150_000, seed=7)
