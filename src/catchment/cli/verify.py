"""`catchment verify`: compare source and lake row by row while both move on."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console

from catchment.cli.output import feed_argument, tables_of
from catchment.config import load
from catchment.engine.choice import engine_of, prepared
from catchment.feed.verify import must_be_verifiable, verify
from catchment.model.cut import Cut
from catchment.model.errors import VerifyDifference
from catchment.model.table import TableId
from catchment.screen.comparing import VerifyView, lines


@click.command(name="verify")
@feed_argument
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="SCHEMA.NAME",
    help="Only this table; may be given more than once.",
)
def verify_command(file: Path, tables: tuple[str, ...]) -> None:
    """Compare every copied row with its source, both as of an epoch. Exit code 1 when any key differs."""
    feed = load(file, secrets=("password", "state", "mask_key"))
    nursery = prepared(feed)
    only = tables_of("--table", tables)
    endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
    manifest = must_be_verifiable(feed, endpoints, only).manifest
    view = VerifyView(Console(stderr=True), _copied(manifest.cut, only))
    with view.live(), closing(engine_of(feed, "verify", nursery)) as engine:
        verdict = verify(feed, endpoints, engine, only, view.observe)
    for line in lines(verdict):
        click.echo(line)
    if verdict.differences:
        raise VerifyDifference(f"feed {feed.name}: {verdict.differences} keys differ between source and lake")


def _copied(cut: Cut, only: Sequence[TableId]) -> dict[TableId, int]:
    """Rows that were copied, by table: about as many as there are to compare."""
    rows: dict[TableId, int] = {}
    for copy in cut.copies:
        if not only or copy.table in only:
            rows[copy.table] = rows.get(copy.table, 0) + copy.rows
    return rows
