"""An example of examples/elsewhere as a process of its own, and its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.promises.crash.test_work import children

EXAMPLES = Path(__file__).parents[3] / "examples" / "elsewhere"


class Job:
    """A running example. It appends what it prints to the file `said`."""

    def __init__(self, name: str, arguments: Sequence[str], login: Mapping[str, str], said: Path) -> None:
        self._said = said
        with said.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
                env={**os.environ, **login, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
                stdout=out,
                stderr=out,
                process_group=0,
            )

    def must_run(self) -> None:
        """Raise AssertionError with its words where it has ended."""
        assert self._process.poll() is None, self.words()

    def words(self) -> str:
        """The end of what it has printed."""
        return self._said.read_text()[-5000:]

    def kill(self) -> None:
        """kill -9 of the program, its Java and its Python workers."""
        if self._process.poll() is not None:
            return
        tree = [self._process.pid]
        for parent in tree:
            tree += children(parent)
        for process in tree:
            with suppress(ProcessLookupError):  # a child may have gone with its parent
                os.kill(process, signal.SIGKILL)
        self._process.wait()


@contextmanager
def running(name: str, arguments: Sequence[str], login: Mapping[str, str], said: Path) -> Iterator[Job]:
    """An example that is killed at the end of the block."""
    job = Job(name, arguments, login, said)
    try:
        yield job
    finally:
        job.kill()
