"""Checks of foreign keys by which the server changes rows that it does not log."""

from collections.abc import Mapping

from catchment.doctor.finding import Finding, Severity
from catchment.model.table import Table, TableId
from catchment.schema.foreign_keys import kept_as_they_are
from catchment.source.foreign_keys import REMEDY, declared_keys
from catchment.source.session import Session


def check_families(
    session: Session, tables: Mapping[TableId, Table], refused: Severity
) -> tuple[list[Finding], dict[TableId, Table]]:
    """Findings about these tables of one shard, and those that can be carried. `refused`: how grave it is that one
    cannot be. Raises SourceError."""
    shard = session.endpoint.shard
    columns = {table: kept_as_they_are(found.columns, ()) for table, found in tables.items()}
    among = declared_keys(session, columns).usable_among(columns)
    findings = [
        Finding(refused, shard, f"{table}: {why}", "it cannot be copied", REMEDY)
        for table, why in sorted(among.refused.items())
    ]
    for one in among.keys:
        if one.key.unfollowed:
            findings.append(
                Finding(
                    Severity.WARNING,
                    shard,
                    f"{one.key.child} has the foreign key {one.key.name} {one.said}: {one.key.unfollowed}",
                    "when rows of its parent go, or their keys change, the table is stale and copied again",
                    "make the key RESTRICT and change the rows by statements",
                )
            )
    return findings, {table: found for table, found in tables.items() if table not in among.refused}
