"""The demo: two private shards under constant writes, copied and followed into a lake, then verified."""

import dataclasses
import shlex
import sys
import tempfile
import threading
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml
from rich.console import Console

from catchment.config import Feed, load
from catchment.demo import workload
from catchment.demo.server import PrivateServer
from catchment.engine.choice import engine_of
from catchment.feed.runner import Outcome, run_feed
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify
from catchment.feed.verify_report import report_of
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import VerifyDifference
from catchment.screen.comparing import lines
from catchment.screen.live import shown
from catchment.screen.progress import RunView
from catchment.watch.report import Report

SCHEMA = "shop"
SHARDS = ("-80", "80-")


@dataclass(frozen=True)
class Options:
    """`rows`: per table and shard. `seconds`: of writes while the feed runs. `rate`: transactions per second
    and shard.
    """

    rows: int = 300_000
    seconds: float = 20.0
    rate: float = 60.0


def run_demo(directory: Path, options: Options, console: Console, stop: threading.Event) -> None:
    """Run it all; raises VerifyDifference when source and lake differ. The lake stays in `directory`."""
    with ExitStack() as stack:
        console.print(f"starting two MariaDB shards, loading 3 tables of {options.rows:,} rows into each ...")
        servers = [stack.enter_context(PrivateServer(server_id=n, domain_id=n, durable=True)) for n in (1, 2)]
        _load(servers, options)
        feed = load(_write_feed(directory, servers))
        say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
        view = RunView(feed.name, None if console.is_terminal else say)
        console.print(
            f"running {directory / 'feed.yaml'} under {2 * options.rate:.0f} transactions a second ...",
            soft_wrap=True,
        )
        with shown(console, lambda: view.seen) if console.is_terminal else nullcontext():
            outcome = _follow(feed, servers, view, options, stop)
        if stop.is_set():
            console.print("stopped")
            return
        caught_up = f"caught up at epoch {epoch_text(outcome.manifest.epoch)}"
        console.print(
            f"{caught_up}; comparing every row with the source ...", highlight=False, soft_wrap=True
        )
        endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
        with closing(engine_of(feed)) as engine:
            verdict = verify(feed, endpoints, engine)
        _summary(console, feed, view, verdict)
    if verdict.differences:
        raise VerifyDifference(f"{verdict.differences} keys differ between source and lake")


def _follow(
    feed: Feed, servers: list[PrivateServer], view: RunView, options: Options, stop: threading.Event
) -> Outcome:
    """Run the feed; the writers write from the start and end after a while, then the feed catches up."""
    settled = threading.Event()
    with workload.steady_writers(servers, SCHEMA, options.rows, rate=options.rate / 2) as writers:
        begun = threading.Event()

        def settle() -> None:
            begun.wait()
            stop.wait(options.seconds)
            writers.stop()
            settled.set()

        def observe(report: Report) -> None:
            begun.set()
            view.observe(report)

        thread = threading.Thread(target=settle, name="settle", daemon=True)
        thread.start()
        told = dataclasses.replace(view.observer(), committed=observe)
        outcome = run_feed(feed, until_caught_up=True, stop=stop, observer=told, settled=settled)
        begun.set()
        thread.join()
    return outcome


def _summary(console: Console, feed: Feed, view: RunView, verdict: Verdict) -> None:
    report = view.newest
    assert report is not None
    for line in lines(report_of(verdict)):
        console.print(f"  {line}", highlight=False)
    equal = "equal" if not verdict.differences else f"{verdict.differences} keys differ"
    rate = view.seen.copied_rows / max(view.copy_seconds, 0.001)
    console.print()
    console.print(
        f"rows copied      {view.seen.copied_rows:,} ({rate:,.0f} a second, start of Spark included)",
        highlight=False,
    )
    console.print(f"changes applied  {view.seen.changes:,} in {view.seen.epochs} epochs", highlight=False)
    newest, window_ms = report.manifest.epoch, report.manifest.window_us / 1000
    console.print(f"newest epoch     {epoch_text(newest)}, cut window {window_ms:.1f} ms", highlight=False)
    console.print(f"verify           source and lake are {equal}")
    console.print(f"lake tables      {feed.sink.path}/{SCHEMA}/*", highlight=False, soft_wrap=True)
    query = (
        f"from catchment.api.read import read; print(read('{feed.sink.path}', '{SCHEMA}.orders').duckdb())"
    )
    # `make demo` leaves its virtual environment's python out of the PATH.
    python = shlex.quote(sys.executable)
    console.print(f'query in DuckDB  {python} -c "{query}"', highlight=False, soft_wrap=True)


def _load(servers: list[PrivateServer], options: Options) -> None:
    threads = []
    for index, server in enumerate(servers):
        workload.create_tables(server, SCHEMA)
        threads.append(
            threading.Thread(
                target=workload.load,
                args=(server, SCHEMA, options.rows),
                kwargs={"index": index, "count": len(servers)},
            )
        )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _write_feed(directory: Path, servers: list[PrivateServer]) -> Path:
    """The feed file as a user would write it; the passwords lie in files beside it."""
    shards = []
    for name, server in zip(SHARDS, servers, strict=True):
        secret = directory / f"password{name}"
        secret.touch(mode=0o600)
        secret.write_text(server.password)
        shards.append(
            {
                "name": name,
                "host": server.host,
                "port": server.port,
                "user": "catchment",
                "password": {"file": secret.name},
            }
        )
    feed = {
        "name": "demo",
        "source": {"keyspace": SCHEMA, "shards": shards},
        "tables": [f"{SCHEMA}.*"],
        "sink": {"path": "lake"},
    }
    path = directory / "feed.yaml"
    path.write_text(yaml.safe_dump(feed, sort_keys=False))
    return path


def default_directory() -> Path:
    """A fresh directory for the demo's lake."""
    return Path(tempfile.mkdtemp(prefix="catchment-demo-"))
