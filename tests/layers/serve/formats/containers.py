"""Container files of Avro's, made of a real stream, and read back."""

import io
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyspark

import catchment
from catchment.demo.server import PrivateServer
from catchment.serve.formats.avro import AvroFile
from catchment.serve.stream.events import Heartbeat
from catchment.serve.stream.stream import Stream
from tests.layers.serve.formats.told import SHARD
from tests.promises.stream.sources import source_of

NOW_MS = 1_795_617_712_364
Record = dict[str, Any]
_JARS = Path(pyspark.__file__).parent / "jars"
_JUDGE = Path(__file__).with_name("AvroJudge.java")


def told_as_avro(server: PrivateServer, schema: str, *statements: str, until: Callable[[Record], bool]) -> bytes:
    """A file with the rows of a schema and the changes that the statements make, up to the vgtid behind the first record
    of which `until` holds."""
    with catchment.stream(source_of({SHARD: server}), rules=[f"{schema}.*"]) as stream:
        file = AvroFile(stream.tables, lambda: NOW_MS)
        whole, said = b"", False
        for turn in _turns(stream):
            assert not file.lacking(turn)
            whole += b"".join(file.blocks(turn))
            if turn.stands.cut.copied and not said:
                server.sql(*statements, database=schema)
                said = True
            if said and any(until(one) for one in records(whole)):
                return whole
    raise AssertionError("a stream has no end")


def _turns(stream: Stream) -> Iterator[Any]:
    return (turn for turn in stream.turns() if not isinstance(turn, Heartbeat))


def records(file: bytes) -> list[Record]:
    """By the library that wrote it."""
    return list(fastavro.reader(io.BytesIO(file))) if file else []  # type: ignore[arg-type]


def schema_of(file: bytes) -> Any:
    """The schema in its header."""
    return fastavro.reader(io.BytesIO(file)).writer_schema


def judged(file: bytes) -> list[list[str]]:
    """By Apache's own library for Java, which PySpark brings: of each record what it calls `after`, value by value."""
    command = ["java", "-cp", f"{_JARS}{os.sep}*", str(_JUDGE)]
    done = subprocess.run(command, input=file, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def afters(file: bytes) -> Sequence[Record]:
    """The rows that came or changed."""
    return [one["after"] for one in records(file) if one["after"] is not None]
