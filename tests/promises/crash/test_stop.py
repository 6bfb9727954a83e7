"""Ctrl-C and SIGTERM: a command ends in order and soon, a second one ends it at once, and the same command goes on."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from catchment.cli.main import execute
from catchment.cli.output import EXIT_INTERRUPTED
from catchment.demo.server import PrivateServer
from catchment.sink.delta.epochs.table import EpochsTable
from tests.promises.crash.conftest import MakeLife
from tests.promises.crash.life import Life, written
from tests.promises.crash.silence import silent_in_a_chunk
from tests.promises.crash.test_work import children
from tests.world.log_lines import without_times
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.told import Ended

STOPPED = "catchment: stopped; the same command goes on from here"
AGAIN = "catchment: stopped again, ended at once"


def copying(life: Life) -> bool:
    """Whether the lake has some of the rows."""
    row = EpochsTable(life.lake, "life").newest()
    assert row is not None
    return any(copy.rows for copy in row.manifest.cut.copies) and not row.manifest.cut.copied


@pytest.mark.promise("Ctrl-C or SIGTERM ends a run in order, and a second one ends it at once")
def test_a_run_that_is_stopped_ends_in_order_and_at_once_when_it_is_stopped_again(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    life = live(pair)
    life.load(1000)
    with written(life):
        run = life.told()
        run.wait_for("copy", state="begun")
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        run.wait_for("stopping")
        assert run.last()["exit_code"] == EXIT_INTERRUPTED
        assert run.ended() == Ended(EXIT_INTERRUPTED, "")
        assert copying(life)
        with silent_in_a_chunk(pair["-80"]) as silence:
            life.describe({"-80": {"port": silence.port}})
            run = life.told()
            silence.await_chunk()
            silence.await_clock()  # now a thread of the run waits for the shard, too
            os.killpg(run.pid, signal.SIGTERM)
            run.wait_for("stopping")
            os.killpg(run.pid, signal.SIGTERM)
            ended = run.ended()
        assert (ended.code, ended.said.splitlines()[-1].startswith(AGAIN)) == (EXIT_INTERRUPTED, True), ended
        assert "ended" not in [event["event"] for event in run.events]
    life.describe()
    assert life.run() == 0
    life.must_be_exact()


@pytest.mark.promise("every line of a run's log has time, level and the part that wrote it")
def test_a_run_keeps_a_log_and_says_in_its_last_line_that_it_was_stopped(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    life = live(pair, count=1)
    life.load(20)
    assert life.run() == 0
    command = life.start("run")
    until("it reads the log", lambda: "reading the log since" in command.output.read_text())
    os.killpg(command.process.pid, signal.SIGINT)
    ended = command.ended()
    assert ended.code == EXIT_INTERRUPTED, ended
    lines = [line for line in ended.said.splitlines() if line]
    assert all(without_times(line) != line for line in lines), ended.said
    assert without_times(lines[-1]).startswith("run: life: stopped at epoch")
    ended = life.command("run", "--until-caught-up", "--log-format", "json")
    found = [json.loads(line) for line in ended.said.splitlines()]
    assert {(one["level"], one["feed"]) for one in found} == {("info", "life")}, ended.said
    assert found[-1]["message"].startswith("life: caught up at epoch ")
    assert life.command("run", "--until-caught-up", "--quiet") == Ended(0, "")
    pair["-80"].sql(f"DROP TABLE {life.schema}.t00")
    ended = life.command("run", "--until-caught-up", "--quiet", "--log-format", "json")
    told = [json.loads(line) for line in ended.said.splitlines()]
    assert ("warning", f"{life.schema}.t00") in {(one["level"], one.get("table")) for one in told}, ended.said
    for server in pair.values():
        assert server.password not in ended.said


def test_other_commands_are_stopped_as_well_and_leave_nothing_behind(
    pair: dict[str, PrivateServer], live: MakeLife
) -> None:
    life = live(pair, count=1)
    life.load(20)
    assert life.run() == 0
    with silent_in_a_chunk(pair["-80"]) as silence:
        life.describe({"-80": {"port": silence.port}})
        command = life.start("verify")
        silence.await_chunk()
        family = [command.process.pid]
        for parent in family:
            family += children(parent)
        assert len(family) > 1, "no worker reads"
        os.killpg(command.process.pid, signal.SIGTERM)
        ended = command.ended()
    said = [line for line in ended.said.splitlines() if line]  # click puts an empty one behind ^C
    assert (ended.code, said) == (EXIT_INTERRUPTED, [STOPPED])
    until("its processes are gone", lambda: not any(Path(f"/proc/{one}").exists() for one in family))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        life.describe({"-80": {"port": silent.getsockname()[1]}})
        command = life.start("doctor")
        silent.settimeout(PATIENCE_SECONDS)
        with silent.accept()[0]:
            # Two of a kind may become one signal.
            os.killpg(command.process.pid, signal.SIGINT)
            os.killpg(command.process.pid, signal.SIGTERM)
            ended = command.ended()
    assert ended.code == EXIT_INTERRUPTED
    assert ended.said.splitlines()[-1] == AGAIN
    life.describe()
    assert execute(["verify", str(life.file)]) == 0
