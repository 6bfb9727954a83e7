"""`catchment upgrade`: a lake of an earlier version, in this version's layout."""

from collections.abc import Iterator
from pathlib import Path

import click

from catchment.cli.output import feed_argument
from catchment.config import load
from catchment.feed.upgrade import Upgraded
from catchment.feed.upgrade import upgrade as upgrade_feed
from catchment.model.version import LAKE_LAYOUT
from catchment.state.faults import from_environment


@click.command()
@feed_argument
@click.option("--dry-run", is_flag=True, help="Name the tables of an earlier layout, and write nothing.")
def upgrade(file: Path, dry_run: bool) -> None:
    """Bring the lake of an earlier version to this version's layout, without a new copy from the shards.

    Stop the feed first. If the command is ended, give it again: it goes on. Versions before cannot go back to such a
    lake (docs/upgrade.md).
    """
    feed = load(file, secrets=("state",))
    for line in _lines(upgrade_feed(feed, write=not dry_run, fault=from_environment()), dry_run):
        click.echo(line)


def _lines(found: Upgraded, dry_run: bool) -> Iterator[str]:
    if not found.tables:
        yield f"nothing to upgrade: every table has layout {LAKE_LAYOUT}"
        return
    for table in found.tables:
        rows = found.changes.get(str(table), 0)
        yield f"{table}: of an earlier layout" if dry_run else f"{table}: upgraded, {rows:,} changes settled"
    if dry_run:
        yield f"{len(found.tables)} tables to upgrade; nothing was written (--dry-run)"
    else:
        yield f"{len(found.tables)} tables have layout {LAKE_LAYOUT} now; start the feed again"
