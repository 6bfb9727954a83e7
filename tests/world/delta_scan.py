"""Plain tables as DuckDB's delta extension reads them, at every version. It knows nothing of Catchment: a judge.

The extension on the index is built for another DuckDB than the suite's. So a process of its own reads, with the
packages that `make setup` puts beside the suite's (dev/foreign-readers.txt).
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from tests.world.patience import PATIENCE_SECONDS

FOREIGN = Path(sys.prefix) / "foreign"


# Processes that nobody uses now: one takes most of a second to start. Each ends with this one, when its input does.
_idle: "list[subprocess.Popen[bytes]]" = []


class DeltaScan:
    """A process that reads plain tables, until the block ends. Another one may have it then, with a database of its
    own."""

    def __enter__(self) -> Self:
        """Take an idle one, or start it."""
        self._process = _idle.pop() if _idle else _started()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back; behind an error, end it: there may be an answer that nobody took."""
        if error is None:
            self._asked({})
            _idle.append(self._process)
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE_SECONDS)

    def query(self, script: str, query: str) -> pa.Table:
        """The rows of a query, after a script of statements. AssertionError has DuckDB's words."""
        return self._asked({"script": script, "query": query})

    def rows(self, directory: Path, columns: Sequence[str], version: int | None = None) -> pa.Table:
        """Columns of a table at a version, the newest if None; rows in no order. AssertionError has DuckDB's words."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        named = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
        place = str(directory).replace("'", "''")
        pinned = "" if version is None else f", version={version}"
        return self._asked({"script": "", "query": f"SELECT {named} FROM delta_scan('{place}'{pinned})"})

    def _asked(self, asked: dict[str, str]) -> pa.Table:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        assert said, "the process that reads has ended"
        answer = json.loads(said)
        assert "error" not in answer, answer["error"]
        with pa.ipc.open_stream(self._process.stdout.read(answer["bytes"])) as stream:
            return stream.read_all()


def _started() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.world.delta_scan"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(FOREIGN)},
    )


def main() -> None:
    """The process: a JSON line asks, a JSON line and an Arrow stream answer. An empty question: forget all."""
    import duckdb

    connection = _connected()
    for line in sys.stdin:
        asked = json.loads(line)
        if not asked:
            connection.close()
            connection = _connected()
        try:
            if asked.get("script"):
                connection.execute(asked["script"])
            found = connection.sql(asked.get("query", "SELECT 1")).to_arrow_table()
        except duckdb.Error as error:
            _answer({"error": str(error)}, b"")
            continue
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, found.schema) as stream:
            stream.write_table(found)
        _answer({"bytes": len(sink.getvalue())}, sink.getvalue())


def _connected() -> Any:
    import duckdb
    import duckdb_extension_delta

    (extension,) = Path(duckdb_extension_delta.__file__).parent.glob("extensions/*/delta.duckdb_extension")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"LOAD '{extension}'")
    return connection


def _answer(answer: dict[str, object], content: bytes | pa.Buffer) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
