"""`catchment doctor`: is everything as a feed needs it?"""

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec

from catchment.cli.output import columns, feed_argument, json_option, show
from catchment.config import load
from catchment.doctor import Diagnosis, Finding, Severity, examine
from catchment.doctor.finding import TableFound, on_shards
from catchment.model.errors import SourceError
from catchment.model.named import counted


@click.command()
@feed_argument
@json_option
def doctor(file: Path, as_json: bool) -> int:
    """Check shards, tables, lake and state store; write nothing.

    Each finding says what it risks and which setting to change. The exit code is 3 when there is an error,
    else 0.
    """
    found = examine(load(file))
    show(found, lines, as_json=as_json)
    return SourceError.exit_code if any(f.severity is Severity.ERROR for f in found.findings) else 0


def lines(found: Diagnosis) -> Iterable[str]:
    """What was found, then the tables; equal findings of several shards are one."""
    shards: dict[Finding, list[str]] = {}
    for finding in found.findings:
        shards.setdefault(_of_any_shard(finding), []).append(finding.shard)
    for finding, named in shards.items():
        yield from _said(finding, on_shards(named, len(found.shards)) if named[0] else "")
    if found.tables:
        yield ""
        rows = [(t.table, f"{t.rows:,}", ", ".join(t.key), _where(t, found)) for t in found.tables]
        yield from columns([("table", "rows, about", "key", "on"), *rows])
        yield ""
    if found.exclusions:
        count = len(found.exclusions)
        yield (
            f"{count} {'table' if count == 1 else 'tables'} cannot be carried: paste these lines under `tables`, or "
            "set `unusable: skip`"
        )
        yield from (f"  {line}" for line in found.exclusions)
        yield ""
    counts = {severity: sum(f.severity is severity for f in shards) for severity in Severity}
    yield f"{counted(counts[Severity.ERROR], 'error')}, {counted(counts[Severity.WARNING], 'warning')}"


def _of_any_shard(finding: Finding) -> Finding:
    """The finding without its shard, which errors name themselves."""
    said = finding.found.removeprefix(f"shard {finding.shard}: ").removeprefix(f"shard {finding.shard}, ")
    return msgspec.structs.replace(finding, shard="", found=said)


def _said(finding: Finding, where: str) -> Iterable[str]:
    # Errors that tell where a shard is are not given its name twice.
    named = not where or finding.found.startswith("shard ")
    yield f"{finding.severity.value:<7}  {'' if named else f'{where}: '}{finding.found}"
    if finding.risk:
        yield f"         risk: {finding.risk}"
    if finding.remedy:
        yield f"         do:   {finding.remedy}"


def _where(table: TableFound, found: Diagnosis) -> str:
    return on_shards(table.shards, len(found.shards))
