"""`catchment demo`: see it work on two private servers."""

from pathlib import Path

import click
from rich.console import Console

from catchment.cli.signals import stopped_by_signals
from catchment.demo.demo import Options, default_directory, run_demo


@click.command()
@click.option("--rows", default=Options().rows, show_default=True, help="Rows to load, per table and shard.")
@click.option(
    "--seconds",
    default=Options().seconds,
    show_default=True,
    help="How long writes go on while the feed runs.",
)
@click.option(
    "--rate", default=Options().rate, show_default=True, help="Transactions a second on each shard."
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    help="Where lake and feed file go; a fresh one by default.",
)
def demo(rows: int, seconds: float, rate: float, directory: Path | None) -> None:
    """Copy and follow two private MariaDB shards under writes, then compare every row. Takes about a minute."""
    place = directory or default_directory()
    place.mkdir(parents=True, exist_ok=True)
    with stopped_by_signals() as stop:
        run_demo(place, Options(rows, seconds, rate), Console(), stop)
