"""`catchment settle`: bring the tables of the lake to the newest epoch now, beside a running feed or without one."""

from contextlib import closing
from pathlib import Path

import click

from catchment.cli.output import feed_argument
from catchment.config import load
from catchment.sink.registry.sinks import sink_of
from catchment.state.lease import newest_fence
from catchment.state.resume import must_have_lake
from catchment.state.store import Store


@click.command()
@feed_argument
def settle(file: Path) -> None:
    """Bring every table of the lake to the newest epoch, and delete files that no reader needs any more."""
    feed = load(file, secrets=("state",))
    sink = sink_of(feed)
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        must_have_lake(feed, store, sink.newest())
        settled = sink.settle(newest_fence(store))
    for table, rows in sorted(settled.changes.items()):
        click.echo(f"{table}: {rows:,} changes settled")
    click.echo(f"{len(settled.changes)} tables settled, {settled.deleted} files deleted")
