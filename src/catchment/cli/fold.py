"""`catchment fold`: fold all changes into the base now, beside a running feed or without one."""

from pathlib import Path

import click

from catchment.cli.output import feed_argument
from catchment.config import load
from catchment.flow.sink.due import FoldLimits
from catchment.run.fold_process import FoldOrder, carry_out
from catchment.run.lease import newest_fence
from catchment.run.store import Store


@click.command()
@feed_argument
def fold(file: Path) -> None:
    """Fold recent changes of every table into its base, and delete files that no reader needs any more."""
    feed = load(file)
    store = Store.open(feed.state.get_secret_value(), feed.name, create=False)
    limits = FoldLimits(feed.sink.fold.share, feed.sink.fold.files, feed.sink.fold.age)
    order = FoldOrder(
        str(feed.sink.path), feed.name, newest_fence(store), limits, feed.sink.keep, all_tables=True
    )
    folded = carry_out(order)
    store.close()
    for table, rows in sorted(folded.changes.items()):
        click.echo(f"{table}: {rows:,} changes folded")
    click.echo(f"{len(folded.changes)} tables folded, {folded.deleted} files deleted")
