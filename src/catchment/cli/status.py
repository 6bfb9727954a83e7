"""`catchment status`: where does a feed stand?"""

from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click

from catchment.cli.output import columns, duration, feed_argument, json_option, show
from catchment.cli.table_lines import table_lines
from catchment.config import load
from catchment.model.named import by_cause, tables_named
from catchment.model.progress import THROUGH
from catchment.model.strategy import Strategy
from catchment.screen.until import until
from catchment.screen.verified import comparison_lines
from catchment.state.store import Store
from catchment.watch.status import Status, read_status

_ERRORS_SHOWN = 5
# A run writes that it lives every two seconds; one that waits for its store may be late.
_SILENT_SECONDS = 60.0


@click.command()
@feed_argument
@json_option
def status(file: Path, as_json: bool) -> None:
    """Show epoch, lag, cut and copy progress, and how the last run ended, from the state store."""
    feed = load(file, secrets=("state",))
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        found = read_status(store)
    show(found, _lines, as_json=as_json)


# Clocks of two machines may differ by as much.
AHEAD_SECONDS_MAX = 2.0


def _lines(status: Status) -> Iterable[str]:
    yield from _running(status)
    if status.run is not None and status.run.strategy != Strategy.REWIND.value:
        yield f"rows are copied by {status.run.strategy} (copy.strategy)"
    if status.lag_seconds is None:
        yield "no epoch is committed yet"
        yield from _errors(status)
        return
    pending = f"; the next one has its {status.pending}" if status.pending else ""
    yield f"epoch {status.epoch_text}, {duration(status.lag_seconds)} old{pending}"
    if status.ahead_seconds > AHEAD_SECONDS_MAX:
        yield (
            f"its number is {duration(status.ahead_seconds)} ahead of this machine's clock: a clock was ahead; numbers "
            "go on one by one until the time has caught up, and at= finds epochs by the times of their cuts"
        )
    yield ""
    yield from columns([("shard", "cut"), *status.cut.items()])
    for shard, since in status.absent.items():
        yield f"shard {shard} could not be read for this epoch: its rows stand as of {_when(since)}"
    yield ""
    yield from table_lines(status.tables)
    if status.copy != THROUGH:
        yield f"until all rows are copied: {until(status.copy)}"
    for log in status.behind:
        backlog = "unknown" if log.backlog_bytes is None else f"{log.backlog_bytes:,}"
        yield (
            f"shard {log.shard} is {duration(log.lag_seconds)} behind, {backlog} bytes of log; "
            f"until it is caught up: {until(log.left)}"
        )
    if THROUGH not in (status.copy, status.log, status.whole) and status.runner:
        yield f"until all is up to date: {until(status.whole)}"
    for table in status.tables:
        yield from table.refused
    causes = [(one.table, f"(readers see {one.as_of}): {one.reason}") for one in status.tables if one.as_of]
    for said, tables in by_cause(causes).items():
        yield f"{tables_named(tables)} stale {said}"
    yield from _not_carried(status)
    for one in status.settings:
        yield f"{one.name}={one.value}, set by {one.user} at {one.since}; the feed file said {one.file_value}"
    yield from comparison_lines(status.verification, runs=bool(status.runner))
    yield from _errors(status)


def _running(status: Status) -> Iterable[str]:
    """Who runs it since when, or since when nobody does and why."""
    run = status.run
    if status.runner:
        yield f"feed {status.feed}: run by {status.runner}{f' since {run.started}' if run else ''}"
        if run and _seconds_since(run.last_sign_of_life) > _SILENT_SECONDS:
            yield f"its last sign of life is of {_when(run.last_sign_of_life)}"
        for trouble in status.troubles:
            yield trouble.text
        for one in status.throttled:
            yield one.text
        for held in status.sessions:
            yield f"the run {held.text}"
    elif run is None:
        yield f"feed {status.feed}: not running"
    elif run.ended is None:
        yield (
            f"feed {status.feed}: not running since about {_when(run.last_sign_of_life)}, its last sign of life: "
            "killed without an exit code"
        )
    else:
        yield f"feed {status.feed}: not running since {_when(run.ended)}, exit code {run.exit_code}"
        if run.error is not None:
            yield f"{run.error.kind}: {run.error.message}"


def _not_carried(status: Status) -> Iterable[str]:
    """The tables that `tables` takes all the same."""
    for one in status.tables_not_carried:
        yield f"not carried: {one.table} on {', '.join(one.shards)} ({one.reason})"


def _errors(status: Status) -> Iterable[str]:
    """The newest errors; JSON has all that are kept."""
    if not status.errors:
        return
    yield ""
    yield "newest errors"
    for error in status.errors[:_ERRORS_SHOWN]:
        times = f", {error.count} times since {error.first}" if error.count > 1 else ""
        yield f"{error.last}  {error.kind}{times}: {error.message}"


def _when(text: str) -> str:
    return f"{text} ({duration(_seconds_since(text))} ago)"


def _seconds_since(text: str) -> float:
    return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds())
