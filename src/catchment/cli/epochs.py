"""`catchment epochs`: which epochs a lake has, and which of them can be read."""

from collections.abc import Iterable
from pathlib import Path

import click

from catchment.api.epochs import CommittedEpoch, epochs
from catchment.cli.output import columns, feed_argument, json_option, show
from catchment.config import load


@click.command(name="epochs")
@feed_argument
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="So many, the newest."
)
@click.option("--kept", is_flag=True, help="Only those that are kept beyond sink.keep.")
@json_option
def epochs_command(file: Path, limit: int, kept: bool, as_json: bool) -> None:
    """List the newest committed epochs, the newest first: when each was cut, its changes, whether it can be read.

    Needs the lake alone: no shard, no state store, no password.
    """
    show(epochs(load(file, secrets=()), limit, kept=kept), _lines, as_json=as_json)


def _lines(found: list[CommittedEpoch]) -> Iterable[str]:
    head = ("epoch", "cut (UTC)", "changes", "can be read")
    without = any(epoch.absent for epoch in found)
    rows = [(*_row(epoch), *([", ".join(epoch.absent)] * without)) for epoch in found]
    yield from columns([(*head, "without") if without else head, *rows])


def _row(epoch: CommittedEpoch) -> tuple[str, ...]:
    cut = epoch.time.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return epoch.epoch_text, cut, f"{epoch.changes:,}", "yes" if epoch.readable else "not any more"
