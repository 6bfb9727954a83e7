"""Container files of Avro's, made of a real stream, and read back."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyspark
from py4j.java_gateway import JavaGateway, JavaObject

import catchment
from catchment.demo.server import PrivateServer
from catchment.serve.formats.avro import AvroFile
from catchment.serve.stream.events import Heartbeat
from catchment.serve.stream.stream import Stream
from catchment.serve.stream.turn import Turn
from tests.layers.serve.formats.told import SHARD
from tests.promises.stream.sources import source_of

NOW_MS = 1_795_617_712_364
Record = dict[str, Any]
_JARS = Path(pyspark.__file__).parent / "jars"
_CONVERSIONS = (
    "Conversions$DecimalConversion",
    "data.TimeConversions$DateConversion",
    "data.TimeConversions$TimestampMicrosConversion",
    "data.TimeConversions$LocalTimestampMicrosConversion",
)


def told_as_avro(
    server: PrivateServer, schema: str, *statements: str, until: Callable[[Record], bool]
) -> bytes:
    """A file with the rows of a schema and the changes that the statements make, up to the vgtid behind the first
    record of which `until` holds."""
    with catchment.stream(source_of({SHARD: server}), rules=[f"{schema}.*"]) as stream:
        file = AvroFile(stream.tables, lambda: NOW_MS)
        whole, said = b"", False
        for turn in turns_of(stream):
            assert not file.lacking(turn)
            whole += b"".join(file.blocks(turn))
            if turn.stands.cut.copied and not said:
                server.sql(*statements, database=schema)
                said = True
            if said and any(until(one) for one in records(whole)):
                return whole
    raise AssertionError("a stream has no end")


def turns_of(stream: Stream) -> Iterator[Turn]:
    """Without what is told while nothing comes."""
    return (turn for turn in stream.turns() if not isinstance(turn, Heartbeat))


def records(file: bytes) -> list[Record]:
    """By the library that wrote it."""
    return list(fastavro.reader(io.BytesIO(file))) if file else []  # type: ignore[arg-type]


def schema_of(file: bytes) -> Any:
    """The schema in its header."""
    return fastavro.reader(io.BytesIO(file)).writer_schema


class JavaJudge:
    """Apache's own library for Java, which PySpark brings. It shares no code with the one that writes."""

    def __init__(self) -> None:
        self._gateway = JavaGateway.launch_gateway(classpath=f"{_JARS}/*", die_on_exit=True)
        self._jvm = self._gateway.jvm

    def afters(self, file: Path) -> list[Record]:
        """What each record calls `after`: numbers and bytes as they are, else Java's text of them."""
        avro = self._jvm.org.apache.avro
        data = avro.generic.GenericData()
        for conversion in _CONVERSIONS:
            data.addLogicalTypeConversion(
                self._jvm.java.lang.Class.forName(f"org.apache.avro.{conversion}").newInstance()
            )
        reader = avro.file.DataFileReader(
            self._jvm.java.io.File(str(file)), avro.generic.GenericDatumReader(None, None, data)
        )
        found = []
        while reader.hasNext():
            after = reader.next().get("after")
            if after is not None:
                names = [field.name() for field in after.getSchema().getFields()]
                found.append({name: _shown(after.get(name)) for name in names})
        return found

    def close(self) -> None:
        self._gateway.shutdown()


def _shown(value: Any) -> Any:
    if not isinstance(value, JavaObject):
        return value
    if value.getClass().getName() == "java.nio.HeapByteBuffer":
        return bytes(value.array())
    return value.toString()


def afters(file: bytes) -> list[Record]:
    """The rows that came or changed."""
    return [one["after"] for one in records(file) if one["after"] is not None]
