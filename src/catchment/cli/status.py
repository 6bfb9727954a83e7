"""`catchment status`: where does a feed stand?"""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import click

from catchment.cli.output import columns, duration, feed_argument, json_option, show
from catchment.config import load
from catchment.run.status import Status, read_status
from catchment.run.store import Store


@click.command()
@feed_argument
@json_option
def status(file: Path, as_json: bool) -> None:
    """Show epoch, lag, cut and copy progress, from the state store."""
    feed = load(file, secrets=("state",))
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        found = read_status(store)
    show(found, _lines, as_json=as_json)


def _lines(status: Status) -> Iterable[str]:
    yield f"feed {status.feed}: {f'run by {status.runner}' if status.runner else 'not running'}"
    if status.lag_seconds is None:
        yield "no epoch is committed yet"
        return
    pending = f"; the next one has its {status.pending}" if status.pending else ""
    yield f"epoch {status.epoch_text}, {duration(status.lag_seconds)} old{pending}"
    yield ""
    yield from columns([("shard", "cut"), *status.cut.items()])
    yield ""
    rows = [(t.table, t.phase.value, f"{t.rows:,}", _share(t.rows, t.rows_expected)) for t in status.tables]
    yield from columns([("table", "phase", "rows copied", "of expected"), *rows])
    for table in status.tables:
        yield from table.refused


def _share(rows: int, expected: int) -> str:
    return f"{min(1.0, rows / expected):.0%}" if expected else "-"
