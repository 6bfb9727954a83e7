"""`catchment tail`: pipes, ends, resumption, and what is refused before any work."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from tests.layers.cli.tailing import TAIL, Tail
from tests.world.patience import PATIENCE_SECONDS, until


def pulled(tail: Tail, met: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """The events of a tail in JSON up to the first of which `met` holds."""
    found = []
    assert tail.stdout is not None
    for line in tail.stdout:
        found.append(json.loads(line))
        if met(found[-1]):
            return found
    raise AssertionError(f"the tail ended: {tail.stderr and tail.stderr.read()}")


def test_until_copied(feed_file: Path, schema: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The feed's own tables; neither a state store nor a lake is needed."""
    assert execute(["tail", str(feed_file), "--from", "copy", "--until-copied"]) == 0
    said = capfd.readouterr()
    assert said.out.splitlines() == [
        f"-                    shop/-80  {schema}.t  copy     id={number}  v='{letter}'"
        for number, letter in enumerate("abcde", 1)
    ]
    assert said.err == ""


def test_rules_and_a_file_from_which_nothing_is_left_to_copy(
    feed_file: Path, schema: str, shard: PrivateServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shard.sql("CREATE TABLE u (id INT PRIMARY KEY)", "INSERT INTO u VALUES (7)", database=schema)
    kept = tmp_path / "place"
    copying = ["tail", str(feed_file), "--until-copied", "--format", "debezium", "--vgtid-file", str(kept)]
    rules = ["--table", f"{schema}.*", "--table", f"!{schema}.t"]
    assert execute([*copying, "--from", "copy", *rules]) == 0
    (line,) = capfd.readouterr().out.splitlines()
    assert json.loads(line)["value"]["after"] == {"id": 7}
    assert execute([*copying, "--from", f"@{kept}", *rules]) == 0
    assert capfd.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir() if "place" in path.name] == ["place"]


def test_an_empty_table_is_copied_at_once(
    feed_file: Path, schema: str, shard: PrivateServer, capfd: pytest.CaptureFixture[str]
) -> None:
    shard.sql("DELETE FROM t", database=schema)
    assert execute(["tail", str(feed_file), "--from", "copy", "--until-copied", "--format", "debezium"]) == 0
    assert capfd.readouterr().out == ""


MANY = "INSERT INTO t SELECT seq + 10, 'x' FROM seq_1_to_20000"


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, list[str]]]:
    """`piped(then, "tail", ...)` runs a command in this process, with a pipe as standard output. Its reader takes three
    lines, calls `then` with the rest and goes. Gives the exit code and the lines."""

    def run(then: Callable[[Iterator[str]], object], *arguments: str) -> tuple[int, list[str]]:
        reading, writing = os.pipe()
        lines: list[str] = []

        def read() -> None:
            with os.fdopen(reading) as pipe:
                lines.extend(next(pipe) for _ in range(3))
                then(pipe)

        reader = threading.Thread(target=read)
        reader.start()
        # A shell without job control has its background commands ignore Ctrl-C, and what they start, too.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with os.fdopen(writing, "w") as pipe, monkeypatch.context() as patch:
                patch.setattr(sys, "stdout", pipe)
                code = execute(arguments)
        finally:
            signal.signal(signal.SIGINT, before)
        reader.join()
        return code, lines

    return run


@pytest.mark.mariadb("sequences")
@pytest.mark.parametrize("more", ["DO 0", MANY], ids=["at rest", "in the middle"])
def test_a_reader_that_goes_ends_it_in_quiet(
    feed_file: Path,
    schema: str,
    shard: PrivateServer,
    more: str,
    piped: Callable[..., tuple[int, list[str]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A pipe holds 64 KiB: with many rows the tail meets a broken pipe, with few it has to look."""
    shard.sql(more, database=schema)
    code, lines = piped(lambda rest: None, "tail", str(feed_file), "--from", "copy")
    assert code == 0
    assert [line.split()[4] for line in lines] == ["id=1", "id=2", "id=3"]
    assert capsys.readouterr().err == ""


def test_ctrl_c(
    feed_file: Path, piped: Callable[..., tuple[int, list[str]]], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(rest: Iterator[str]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        list(rest)  # a reader that went at once could be noticed before the signal

    code, lines = piped(interrupt, "tail", str(feed_file), "--from", "copy")
    assert (code, len(lines)) == (130, 3)
    assert capsys.readouterr().err == "catchment: stopped\n"


@pytest.mark.wide
def test_head(feed_file: Path) -> None:
    """As a shell has it; Python's own end says nothing either."""
    command = f"{' '.join(TAIL)} {feed_file} --from copy | head -3; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    *lines, code = done.stdout.splitlines()
    assert len(lines) == 3
    assert (code, done.stderr) == ("0", "")


@pytest.mark.wide
def test_killed_and_resumed_by_a_file(
    feed_file: Path,
    schema: str,
    shard: PrivateServer,
    tmp_path: Path,
    tails: Callable[..., Tail],
) -> None:
    """Of each part count the events up to the vgtid in the file: together they are each transaction once."""
    kept = tmp_path / "place"
    stop = threading.Event()

    def write() -> None:
        for key in itertools.count(100):
            if stop.wait(0.05):
                return
            shard.sql(
                f"INSERT INTO t VALUES ({key}, 'n')",
                "UPDATE t SET v = v + 1 WHERE id = 1",
                database=schema,
            )

    shard.sql("UPDATE t SET v = 0 WHERE id = 1", database=schema)
    writer = threading.Thread(target=write)
    writer.start()
    counted: list[dict[str, Any]] = []
    try:
        for number in range(4):
            before = kept.read_text().strip() if kept.exists() else ""
            begin = f"@{kept}" if before else "copy"
            written = tmp_path / f"part {number}"
            with written.open("w") as output:
                tail = tails(
                    feed_file, "--from", begin, "--format", "json", "--vgtid-file", kept, stdout=output
                )
                _changes(kept, tail, 4)
                tail.send_signal(signal.SIGKILL)
                tail.wait(PATIENCE_SECONDS)
            assert written.read_text().endswith("\n")
            part = [json.loads(line) for line in written.read_text().splitlines()]
            assert before in ("", part[0]["text"])
            counted += _up_to(part, kept.read_text().strip())
    finally:
        stop.set()
        writer.join()
    shard.sql("INSERT INTO t VALUES (99, 'end')", database=schema)
    tail = tails(feed_file, "--from", f"@{kept}", "--format", "json", "--vgtid-file", kept)
    counted += pulled(tail, lambda event: event["type"] == "row" and event["after"]["v"] == "end")
    tail.send_signal(signal.SIGINT)
    _, said = tail.communicate(timeout=PATIENCE_SECONDS)
    assert (tail.returncode, said) == (130, f"catchment: stopped; --from @{kept} goes on from there\n")
    gtids = [event["gtid"] for event in counted if event["type"] == "begin" and event["gtid"]]
    assert len(set(gtids)) == len(gtids) > 10
    rows: dict[int, str] = {}
    for event in counted:
        if event["type"] == "row":
            before, after = event["before"], event["after"]
            assert (before and before["v"]) == rows.get(after["id"])
            rows[after["id"]] = after["v"]
    assert sorted(rows.items()) == sorted(shard.sql("SELECT id, v FROM t", database=schema))


def _changes(kept: Path, tail: Tail, count: int) -> None:
    """Wait until a tail has written its file so many times."""
    seen = set[str]()

    def enough() -> bool:
        assert tail.poll() is None
        seen.add(kept.read_text() if kept.exists() else "")
        return len(seen) > count

    until(f"the file is written {count} times", enough, every=0.002, seen=lambda: seen)


def _up_to(events: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The events up to that vgtid."""
    (last,) = [number for number, event in enumerate(events) if event.get("text") == text]
    return events[: last + 1]


@pytest.mark.wide
def test_a_file_that_takes_no_more(feed_file: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*TAIL, str(feed_file), "--from", "copy"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
    assert done.returncode == 8
    (line,) = done.stderr.splitlines()
    assert line.startswith("catchment: standard output takes no more: No space left")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tombstones"], "--tombstones: only --format debezium has such messages"),
        (["--until-copied"], "--until-copied: from current nothing is copied"),
        (["--from", "@missing"], "--from: missing cannot be read: No such file or directory; the first time"),
        (["--from", "@empty"], "--from: empty is empty"),
        (["--vgtid-file", "no/where"], "--vgtid-file: no/where cannot be written"),
        (["--vgtid-file", "."], "--vgtid-file: . cannot be written"),
        (["--table", "x."], "rules: x. is not of the form"),
        (["--from", '{"cut": 1}'], "vgtid: not one that a stream gave"),
    ],
)
def test_what_is_refused(
    options: list[str],
    said: str,
    feed_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").touch()
    assert execute(["tail", str(feed_file), *options]) == 2
    captured = capfd.readouterr()
    assert captured.err.startswith(f"catchment: {said}")
    assert captured.out == ""


def test_an_unknown_format(feed_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["tail", str(feed_file), "--format", "parquet"]) == 2
    assert "'parquet' is not one of 'table', 'json', 'debezium', 'avro'" in capfd.readouterr().err
