"""Feeds of the benchmarks: their file, a run until caught up, a run in the background."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from catchment.config import Feed, load
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.feed.runner import run_feed
from catchment.watch.report import Observer, Report

KEYSPACE = "bench"
_LOOK_SECONDS = 0.02


@dataclass
class Ran:
    """Epochs of a run with the seconds since its start at which each was committed, and the whole run's. `began` and
    `began_at`: its start, on `time.perf_counter` and in seconds since 1970."""

    began: float = field(default_factory=time.perf_counter)
    began_at: float = field(default_factory=time.time)
    epochs: list[tuple[float, Report]] = field(default_factory=list)
    seconds: float = 0.0

    def copied_after(self) -> float:
        """Seconds until the epoch with the last chunk was committed."""
        return next(at for at, report in self.epochs if report.manifest.cut.copied)


def feed(directory: Path, servers: Sequence[PrivateServer], **settings: Any) -> Feed:
    """A feed of all tables of the schema `bench` into `directory`; `settings` are sections of the file."""
    shards = [
        {
            "name": f"s{number}",
            "host": server.host,
            "port": server.port,
            "user": FEED_USER,
            "password": server.password,
        }
        for number, server in enumerate(servers)
    ]
    values = {
        "name": "bench",
        "source": {"keyspace": KEYSPACE, "shards": shards},
        "tables": ["bench.*"],
        "sink": {"path": str(directory / "lake")},
        "state": str(directory / "state.db"),
        **settings,
    }
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "feed.yaml"
    file.write_text(yaml.safe_dump(values))
    return load(file)


def run_until_caught_up(chosen: Feed) -> Ran:
    """Run the feed in this thread; the seconds hold the settle at the end."""
    ran = Ran()
    run_feed(
        chosen,
        until_caught_up=True,
        observer=Observer(
            committed=lambda report: ran.epochs.append((time.perf_counter() - ran.began, report))
        ),
        stop=threading.Event(),
    )
    ran.seconds = time.perf_counter() - ran.began
    return ran


@contextmanager
def running(chosen: Feed) -> Iterator[Ran]:
    """Run the feed in a thread until the block ends; raises what ended it early."""
    ran = Ran()
    stop = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run_feed(
                chosen,
                until_caught_up=False,
                observer=Observer(
                    committed=lambda report: ran.epochs.append((time.perf_counter() - ran.began, report))
                ),
                stop=stop,
            )
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="feed")
    thread.start()
    try:
        yield ran
    finally:
        stop.set()
        thread.join()
        ran.seconds = time.perf_counter() - ran.began
    if failed:
        raise failed[0]


def wait_until(holds: Callable[[], bool], seconds: float = 3600.0) -> None:
    """Wait for what a running feed does."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not after {seconds} s")
        time.sleep(_LOOK_SECONDS)


def wait_for_copy(ran: Ran, seconds: float = 600.0) -> None:
    """Wait until every table of a running feed is copied."""
    deadline = time.monotonic() + seconds
    while not any(report.manifest.cut.copied for _, report in list(ran.epochs)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not copied after {seconds} s")
        time.sleep(0.05)
