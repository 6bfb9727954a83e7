"""`catchment doctor`: is everything as a feed needs it?"""

from collections.abc import Iterable
from pathlib import Path

import click

from catchment.cli.output import feed_argument, json_option, show
from catchment.config import load
from catchment.model.errors import SourceError
from catchment.run.doctor import Finding, Severity, examine


@click.command()
@feed_argument
@json_option
def doctor(file: Path, as_json: bool) -> int:
    """Check shards, tables, lake and state store; write nothing.

    Each finding says what it risks and which setting to change. The exit code is 3 when there is an error,
    else 0.
    """
    findings = examine(load(file))
    show(findings, _lines, as_json=as_json)
    return SourceError.exit_code if any(f.severity is Severity.ERROR for f in findings) else 0


def _lines(findings: list[Finding]) -> Iterable[str]:
    for finding in findings:
        where = f"shard {finding.shard}: " if finding.shard else ""
        # Errors that name their shard themselves are not given its name twice.
        said = finding.found if finding.found.startswith("shard ") else where + finding.found
        yield f"{finding.severity.value:<7}  {said}"
        if finding.risk:
            yield f"         risk: {finding.risk}"
        if finding.remedy:
            yield f"         do:   {finding.remedy}"
    counts = {severity: sum(f.severity is severity for f in findings) for severity in Severity}
    yield f"{counts[Severity.ERROR]} errors, {counts[Severity.WARNING]} warnings"
