"""`catchment tail --format avro`: where a file ends, how the next one goes on, and what a kill leaves."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pytest

from catchment.cli.main import execute
from catchment.demo.server import PrivateServer
from tests.layers.cli.tailing import TAIL, Tail
from tests.world.patience import PATIENCE_SECONDS, until


def test_avro_is_not_for_a_terminal(
    feed_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    controller, terminal = os.openpty()
    with os.fdopen(controller), os.fdopen(terminal, "w") as screen, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", screen)
        assert execute(["tail", str(feed_file), "--format", "avro"]) == 2
    assert capsys.readouterr().err.startswith("catchment: --format avro: it is no text for a terminal")


def test_avro_of_an_empty_table_is_a_file_with_its_columns(
    feed_file: Path, schema: str, shard: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard.sql("DELETE FROM t", database=schema)
    copying = ["tail", str(feed_file), "--from", "copy", "--until-copied", "--format", "avro"]
    with (tmp_path / "file.avro").open("w") as output, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", output)
        assert execute(copying) == 0
    with (tmp_path / "file.avro").open("rb") as file:
        reader: Any = fastavro.reader(file)
        assert list(reader) == []
        row = reader.writer_schema["fields"][1]["type"][1]
    assert row == f"{schema}.t"


@pytest.mark.wide
def test_avro_that_follows_through_ddl(
    feed_file: Path, schema: str, shard: PrivateServer, tmp_path: Path, tails: Callable[..., Tail]
) -> None:
    """A reader of the pipe has a row while the file goes on. The file ends in front of rows with other columns, and the
    next one begins there."""
    kept, errors = tmp_path / "place", tmp_path / "errors"
    arguments = [feed_file, "--format", "avro", "--vgtid-file", kept, "--from"]
    found: list[dict[str, Any]] = []
    for number, begin in enumerate(["copy", f"@{kept}"]):
        with errors.open("w") as said:
            tail = tails(*arguments, begin, stderr=said)
        key = 10 * number
        reader: Any = fastavro.reader(tail.stdout.buffer)  # type: ignore[union-attr]
        while not any((row["after"] or {}).get("id") == key + 5 for row in found):
            found.append(next(reader))
        assert tail.poll() is None
        shard.sql(
            f"INSERT INTO t (id) VALUES ({key + 11})",
            f"ALTER TABLE t ADD w{number} INT DEFAULT 7",
            f"INSERT INTO t (id) VALUES ({key + 15})",
            database=schema,
        )
        found += reader
        assert tail.wait(PATIENCE_SECONDS) == 9
        assert errors.read_text().startswith(
            f"catchment: {schema}.t: rows come with columns for which this Avro"
        )
    ids = [row["after"]["id"] for row in found]
    assert ids in ([1, 2, 3, 4, 5, 11, 15], [1, 2, 3, 4, 5, 11, 15, 21])


@pytest.mark.wide
def test_avro_whose_reader_goes(feed_file: Path, schema: str, shard: PrivateServer) -> None:
    shard.sql("INSERT INTO t VALUES (6, 'f')", database=schema)
    command = (
        f"{' '.join(TAIL)} {feed_file} --from copy --format avro | head -c 4; echo -n ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=PATIENCE_SECONDS)
    assert (done.stdout, done.stderr) == (b"Obj\x010", b"")


@pytest.mark.wide
def test_avro_of_a_command_that_is_killed(
    feed_file: Path, schema: str, shard: PrivateServer, tmp_path: Path, tails: Callable[..., Tail]
) -> None:
    """The files together have each change. One that comes twice is known by its GTID and number."""
    kept, stop = tmp_path / "place", threading.Event()

    def write() -> None:
        for key in itertools.count(100):
            if stop.wait(0.02):
                return
            shard.sql(
                f"INSERT INTO t VALUES ({key}, 'n')",
                f"UPDATE t SET v = {key} WHERE id = 1",
                f"DELETE FROM t WHERE id = {key - 3}",
                database=schema,
            )

    writer = threading.Thread(target=write)
    writer.start()
    records: list[dict[str, Any]] = []
    try:
        for number, begin in enumerate(["copy", *[f"@{kept}"] * 3]):
            path = tmp_path / f"{number}.avro"
            with path.open("wb") as output:
                tail = tails(
                    feed_file, "--from", begin, "--format", "avro", "--vgtid-file", kept, stdout=output
                )
                _await_vgtids(path, 5)
                tail.send_signal(signal.SIGKILL)
                tail.wait(PATIENCE_SECONDS)
            records += readable(path)
    finally:
        stop.set()
        writer.join()
    shard.sql("INSERT INTO t VALUES (99, 'end')", database=schema)
    tail = tails(feed_file, "--from", f"@{kept}", "--format", "avro", "--vgtid-file", kept)
    for record in fastavro.reader(tail.stdout.buffer):  # type: ignore[union-attr]
        records.append(record)  # type: ignore[arg-type]
        if (record["after"] or {}).get("v") == "end":  # type: ignore[index, union-attr, call-overload]
            break
    changes = {(one["source"]["gtid"], one["source"]["row"]): one for one in records if one["op"] != "r"}
    rows = {one["after"]["id"]: one["after"]["v"] for one in records if one["op"] == "r"}
    for one in changes.values():
        before, after = one["before"], one["after"]
        if before is not None:
            assert rows.pop(before["id"]) == before["v"]
        if after is not None:
            rows[after["id"]] = after["v"]
    assert len(changes) > 20
    assert sorted(rows.items()) == sorted(shard.sql("SELECT id, v FROM t", database=schema))


def _await_vgtids(path: Path, count: int) -> None:
    until(f"{count} records have a vgtid", lambda: sum(bool(one["vgtid"]) for one in readable(path)) >= count)


def readable(path: Path) -> list[dict[str, Any]]:
    """The records of whole blocks."""
    found: list[Any] = []
    with path.open("rb") as file, suppress(EOFError, ValueError):
        found.extend(fastavro.reader(file))
    return found
