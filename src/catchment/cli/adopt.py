"""`catchment adopt`: go on with a shard's server that was moved, renamed or restored with its log."""

from collections.abc import Iterator
from pathlib import Path

import click

from catchment.cli.output import feed_argument
from catchment.config import load
from catchment.feed.adopt import Adopted
from catchment.feed.adopt import adopt as adopt_server
from catchment.model.epoch_number import epoch_text
from catchment.state.faults import from_environment


@click.command()
@feed_argument
@click.option("--shard", required=True, metavar="NAME", help="The shard whose server has another name now.")
@click.option("--dry-run", is_flag=True, help="Compare, and write nothing.")
def adopt(file: Path, shard: str, dry_run: bool) -> None:
    """Go on with a shard's server that has another hostname, port or server_id now, with the same data and log.

    The log there must go on behind the feed's position. The command compares file, birth, GTIDs, the event at the
    position and open XA PREPAREs, and refuses what does not fit. Stop the feed first.
    """
    found = adopt_server(load(file), shard, write=not dry_run, fault=from_environment())
    for line in _lines(shard, found):
        click.echo(line)


def _lines(shard: str, found: Adopted) -> Iterator[str]:
    if found.now == found.before:
        yield f"shard {shard} is on the server that the feed knows, {found.now}; nothing to adopt"
        return
    yield f"shard {shard}: the feed knew {found.before}; now there is {found.now}"
    yield from (f"  {line}" for line in found.compared)
    if found.epoch is None:
        yield "the log goes on there; nothing was written (--dry-run)"
    else:
        yield (
            f"adopted as of epoch {epoch_text(found.epoch)}; start the feed again. Rows that were changed without the "
            "log, as a restore may have, are found by catchment verify"
        )
