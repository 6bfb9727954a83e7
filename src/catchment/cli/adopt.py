"""`catchment adopt`: go on with another server for a shard."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from catchment.cli.order_lines import must_be_taken, order_lines
from catchment.cli.output import feed_argument
from catchment.config import load
from catchment.feed.adopt import adopt as adopt_server
from catchment.feed.adopt import compare
from catchment.feed.adoption import Adopted
from catchment.feed.dump import adopt as order_adoption
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import LeaseHeld
from catchment.state.faults import from_environment


@click.command()
@feed_argument
@click.option(
    "--shard", required=True, metavar="NAME", help="The shard for which another server answers now."
)
@click.option(
    "--copy",
    is_flag=True,
    help="Where the log does not go on there, copy the shard's tables again, in place.",
)
@click.option("--dry-run", is_flag=True, help="Compare, and write nothing.")
def adopt(file: Path, shard: str, copy: bool, dry_run: bool) -> None:
    """Go on with the server that answers for a shard now.

    A server that was moved, renamed or restored with its data and log goes on where the feed stands. The command
    compares file, birth, GTIDs, the event at the position and open XA PREPAREs, and refuses what does not fit.

    A replica that was promoted has a log of its own. With --copy the feed goes on with it, too: the shard's tables are
    copied again, while the other tables are followed and readers see the rows from before.

    A run uses the feed file as it is now and goes on with the server at once. Without a run the next one does.
    """
    feed = load(file)
    if dry_run:
        _show(_lines(shard, compare(feed, shard, copy=copy)))
        return
    try:
        found = adopt_server(feed, shard, copy=copy, fault=from_environment())
    except LeaseHeld:
        kept = order_adoption(feed, shard, copy=copy)
        _show(order_lines([kept]))
        must_be_taken([kept])
        return
    _show(_lines(shard, found))


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _lines(shard: str, found: Adopted) -> Iterator[str]:
    if found.now == found.before:
        yield found.line(shard)
        return
    yield f"shard {shard}: the feed knew {found.before}; now there is {found.now}"
    yield from (f"  {line}" for line in found.compared)
    if found.differs is None:
        goes_on = "the log goes on there"
        then = "Rows that were changed without the log, as a restore may have, are found by catchment verify"
    else:
        yield f"  {found.differs}"
        goes_on = "the shard's tables would be copied again from there"
        then = "It copies the shard's tables again; until then they are stale"
    if found.epoch is None:
        yield f"{goes_on}; nothing was written (--dry-run)"
    else:
        yield f"adopted as of epoch {epoch_text(found.epoch)}; start the feed again. {then}"
