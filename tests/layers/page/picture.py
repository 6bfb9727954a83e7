"""The picture of the status page in docs/, of a real run of two shards that copies under writes:

python -m tests.layers.page.picture docs/status-page.png
"""

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from catchment import dump
from catchment.demo import workload
from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.watch.report import Observer, Report
from tests.layers.page.browser import picture
from tests.promises.exact.steps import Steps
from tests.world.patience import PATIENCE_SECONDS

SCHEMA = "shop"
SHARDS = 2
ROWS = 60_000
# A copy that goes on for some minutes; the parts of it after which orders are given, and the picture is taken.
CHUNK_ROWS = 120
ORDERED_AT, TAKEN_AT = 0.1, 0.6
WRITES_A_SECOND = 4
HEIGHT = 1290


class Copied:
    """How much of the rows there are is copied."""

    def __init__(self, rows: int) -> None:
        self._changed = threading.Condition()
        self._all = rows * len(workload.KEYS) * SHARDS
        self._rows = 0

    def committed(self, report: Report) -> None:
        with self._changed:
            self._rows = sum(copy.rows for copy in report.manifest.cut.copies)
            self._changed.notify_all()

    def wait(self, share: float) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._rows >= share * self._all, PATIENCE_SECONDS)


@contextmanager
def run_of_two_shards(directory: Path, port: int, rows: int) -> Iterator[tuple[Steps, Copied]]:
    """A run that copies three tables of two shards under writes."""
    with ExitStack() as stack:
        servers = [stack.enter_context(PrivateServer(server_id=n, domain_id=n)) for n in (1, 2)]
        for index, server in enumerate(servers):
            workload.create_tables(server, SCHEMA)
            workload.load(server, SCHEMA, rows, index=index, count=SHARDS)
        steps = Steps(directory, dict(zip(("-80", "80-"), servers, strict=True)), SCHEMA)
        steps.set(
            name=SCHEMA,
            engine="local",
            status={"port": port},
            epoch={"interval": "1s", "tick": "100ms"},
            copy={"chunk_rows_max": CHUNK_ROWS, "group_time": "0s", "groups_per_shard": 1},
        )
        stack.enter_context(workload.steady_writers(servers, SCHEMA, rows, rate=WRITES_A_SECOND))
        stop, copied = threading.Event(), Copied(rows)
        run = threading.Thread(
            target=run_feed,
            args=(steps.feed,),
            kwargs={"until_caught_up": False, "stop": stop, "observer": Observer(committed=copied.committed)},
        )
        run.start()
        try:
            yield steps, copied
        finally:
            stop.set()
            run.join()


def take(file: Path, directory: Path, port: int, rows: int = ROWS) -> None:
    """Take the picture of a run behind two orders."""
    with run_of_two_shards(directory, port, rows) as (steps, copied):
        copied.wait(ORDERED_AT)
        for action in ("pause", "resume"):
            dump(steps.file, action, f"{SCHEMA}.people", wait=PATIENCE_SECONDS)
        copied.wait(TAKEN_AT)
        picture(f"http://127.0.0.1:{port}/", file, height=HEIGHT)


def main(file: Path, port: int = 8420) -> None:
    """Take it with the port that the docs have."""
    with tempfile.TemporaryDirectory(prefix="catchment-picture-") as directory:
        take(file, Path(directory), port)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
