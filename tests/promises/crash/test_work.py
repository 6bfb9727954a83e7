"""Work that dies or waits on its own: workers killed in a chunk, a table locked or altered under the copy."""

import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from catchment.feed import pauses
from catchment.feed.planner import Planner
from catchment.model.errors import LEFT_BEHIND
from catchment.model.position import reaches
from catchment.model.table import ShardTable, TableId
from catchment.state.faults import Fault
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import written
from tests.promises.crash.silence import silent_in_a_chunk
from tests.promises.exact.feedrun import FeedRun
from tests.world.patience import until
from tests.world.proxy import Proxy, execute_begins


def children(parent: int) -> list[int]:
    """Processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


@contextmanager
def held_in_a_select(server: PrivateServer) -> Iterator[tuple[Proxy, threading.Event]]:
    """A proxy that passes nothing on from the first SELECT of a chunk until told to; set when that begins."""
    inside = threading.Event()
    with Proxy(server.host, server.port) as proxy:

        def hold(piece: bytes) -> bool:
            if execute_begins()(piece) and not inside.is_set():
                proxy.stall()
                inside.set()
            return False

        proxy.cut_after(0, after=hold)
        yield proxy, inside


def python_below(process: int) -> list[int]:
    """Workers of a run: of its nursery, or of the `pyspark.daemon` of its Java."""
    below = [one for child in children(process) for one in children(child)]
    return [*below, *(worker for one in below for worker in children(one))]


@pytest.mark.promise("after a worker dies the loop plans the epoch again")
def test_workers_killed_in_a_chunk_have_their_epoch_planned_again(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    life = live(pair)
    life.load(100)
    with silent_in_a_chunk(pair["-80"]) as silence:
        life.describe({"-80": {"port": silence.port}})
        run = life.told()
        silence.await_chunk()
        workers = python_below(run.pid)
        assert workers
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        silence.ends()
        run.wait_for("retry", error="EngineError")
        with written(life):
            run.wait_for("caught_up")
        run.wait_for_log({name: server.log_end() for name, server in pair.items()})
        run.process.terminate()
        run.ended()
    life.must_be_exact()


def test_workers_of_spark_killed_in_a_chunk_and_then_its_driver(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    """What the driver leaves behind reads on, and does no harm."""
    life = live(pair)
    life.load(100)
    with silent_in_a_chunk(pair["-80"]) as silence:
        life.describe({"-80": {"port": silence.port}}, engine="spark")
        run = life.told()
        silence.await_chunk()
        workers = python_below(run.pid)
        assert len(workers) > 1, "a daemon and its workers"
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        silence.ends()
        run.wait_for("retry", error="EngineError")
        run.wait_for("copy", state="begun")
        silence.begin_again()
        silence.await_chunk()
        run.kill()
        silence.ends()
        life.touch(1)
        life.describe()
        assert life.run() == 0
    life.must_be_exact()


def test_a_locked_table_is_copied_later_and_holds_up_no_other(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    """It is locked when the feed begins, which asks each table for its largest key, and while others are copied."""
    life = live(pair)
    life.load(400)
    first = next(iter(life.keys))
    holder = pair["-80"].connect()
    holder.cursor().execute(f"LOCK TABLES {first} WRITE")
    with FeedRun(life.feed) as run:
        run.wait(
            "the others are copied",
            lambda epochs: (
                bool(epochs)
                and all(
                    shard == "-80" and str(table) == first
                    for shard, state in epochs[-1].cut.shards.items()
                    for table in state.copying
                )
            ),
        )
        assert not run.epochs[-1].cut.copied
        holder.close()
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        life.touch(1)
        run.wait_for_log(pair)
    life.must_be_exact()


@pytest.mark.promise("a table whose copy cannot advance is named, the others go on, and it heals by itself")
def test_a_table_altered_in_no_log_is_named_and_the_others_go_on(
    pair: dict[str, PrivateServer],
    live: MakeLife,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before its first chunk is read: none can be copied from then on, until that is taken back."""
    monkeypatch.setattr(pauses, "SECONDS_MAX", 0.5)
    life = live(pair)
    life.load(20)
    altered, *others = life.keys
    left = [1]

    def alter(place: Fault) -> None:
        if place is Fault.AFTER_PLAN and left:
            left.pop()
            pair["80-"].sql("SET sql_log_bin = 0", f"ALTER TABLE {altered} ADD COLUMN extra INT NULL")

    still = {ShardTable("80-", TableId.parse(altered))}
    refused = re.compile(
        rf"{altered} is not copied yet on shard 80- \(try 1\d\): .*not that of the lake "
        r"\(extra\)"
    )

    def named() -> bool:
        assert execute(["status", str(life.file)]) == 0
        return any(map(refused.match, capsys.readouterr().out.splitlines()))

    with FeedRun(life.feed, alter) as run:
        run.wait("the others are copied", lambda epochs: epochs[-1].cut.copying == still)
        until("it is named", named)
        life.touch(1, shard="-80")
        run.wait_for_log(pair)
        assert run.epochs[-1].cut.copying == still
        for table in others:
            life.must_be_exact(table)
    monkeypatch.setattr(pauses, "SECONDS_MAX", 0.0)
    assert execute(["run", str(life.file), "--until-caught-up"]) == LEFT_BEHIND
    assert f"not caught up: {altered} is not copied yet on shard 80- " in capsys.readouterr().err
    pair["80-"].sql("SET sql_log_bin = 0", f"ALTER TABLE {altered} DROP COLUMN extra")
    assert life.run() == 0
    life.must_be_exact()


@pytest.mark.promise("chunks get smaller when their rows change while they are copied")
def test_a_table_that_changes_too_much_is_copied_in_smaller_chunks(
    pair: dict[str, PrivateServer],
    live: MakeLife,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """All rows change behind the floor of the first three epochs; a chunk of them all does not fit, a few do. In these
    epochs the other tables are copied, and rows of the other shard come."""
    life = live(pair)
    life.load(60)
    life.describe(copy={"chunk_rows_max": 60, "group_time": "0s"})
    changed, *others = life.keys
    monkeypatch.setattr(Planner, "image_bytes", 4096)
    planned: list[Fault] = []

    def change(place: Fault) -> None:
        if place is Fault.AFTER_PLAN and len(planned) < 3:
            planned.append(place)
            pair["-80"].sql(f"UPDATE {changed} SET v = v + 1, s = REPEAT('y', 60)")
            life.touch(len(planned), shard="80-")

    with FeedRun(life.feed, change) as run:
        run.wait("a copy", lambda epochs: epochs[-1].cut.copied)
        run.wait_for_log(pair)
        first, _, third, *_ = run.epochs
    for table in others:
        assert not {place for place in third.cut.copying if str(place.table) == table}
    assert ShardTable("-80", TableId.parse(changed)) in third.cut.copying
    there = third.cut.positions["80-"].at
    assert there != first.cut.positions["80-"].at
    assert reaches(there, first.cut.positions["80-"].at)
    assert "more than 4096 bytes of images" in caplog.text
    life.must_be_exact()
