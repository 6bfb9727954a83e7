"""The examination: every shard at the same time, then what holds between shards, then lake, state
store and Spark."""

import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from catchment.config import Feed, Unusable
from catchment.config.table_patterns import exclusion
from catchment.doctor.access import check_log_access, check_replica, check_select
from catchment.doctor.finding import Diagnosis, Finding, Severity, TableFound
from catchment.doctor.settings import check_gtids, check_settings
from catchment.doctor.standing import check_clock, check_logs, check_standing
from catchment.doctor.strategies import check_strategy
from catchment.doctor.surroundings import check_ports, check_sink, check_spark, check_state
from catchment.doctor.table_checks import (
    check_filters,
    check_images,
    check_tables,
    chosen_tables,
    compare_shards,
    unmatched_rules,
)
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, ConfigError, ConnectionLost, SourceError
from catchment.model.position import Server
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.source.offsets import open_xa
from catchment.source.session import Session, connect
from catchment.state.carried import uncarried

CLOCK_SKEW_SECONDS_MAX = 1.0
_SHARDS_AT_ONCE = 16
_NAMED_MAX = 5


class ShardReport(msgspec.Struct, frozen=True):
    """What was found on one shard; `server` is None when it could not be reached."""

    shard: str
    findings: tuple[Finding, ...]
    server: Server | None = None
    chosen: tuple[TableId, ...] = ()
    carried: dict[TableId, Table] = {}
    refused: tuple[TableId, ...] = ()
    rows: dict[TableId, int] = {}


def examine(feed: Feed) -> Diagnosis:
    """Everything found about a feed: what it needs to go on, if it has begun; then by shard in the file's order.

    Reads only, but for a mark of a feed that writes marks; never raises a CatchmentError.
    """
    standing, own = check_standing(feed)
    with ThreadPoolExecutor(_SHARDS_AT_ONCE) as pool:
        reports = list(pool.map(lambda endpoint: _examine_shard(endpoint, feed, standing), feed.endpoints()))
    findings = [finding for report in reports for finding in report.findings]
    reached = [report for report in reports if report.server is not None]
    if standing is not None:
        own += check_clock(standing, time.time_ns() // 1000)
        there = {report.shard for report in reached}
        own += check_logs(feed, standing, [e for e in feed.endpoints() if e.shard in there])
        present = {table for report in reached for table in report.chosen}
        own += [Finding(Severity.WARNING, "", line) for line in uncarried(feed, standing, present)]
    else:  # of a feed that has begun, the log tells which differences it can follow
        findings += compare_shards({report.shard: report.carried for report in reached})
    findings += _same_servers(reached)
    if len(reached) == len(reports):
        findings += unmatched_rules(feed.tables, {table for report in reached for table in report.chosen})
    findings += [*check_sink(feed), *check_state(feed), *check_ports(feed), *check_spark(feed)]
    refused = {table for report in reached for table in report.refused}
    paste = standing is None and feed.unusable is Unusable.FAIL
    return Diagnosis(
        tuple(report.shard for report in reports),
        (*own, *findings),
        _tables(reached, refused),
        tuple(exclusion(table) for table in sorted(refused)) if paste else (),
    )


def _tables(reports: Sequence[ShardReport], refused: set[TableId]) -> tuple[TableFound, ...]:
    """The tables that can be carried, over all shards."""
    found = []
    for table in sorted({table for report in reports for table in report.carried} - refused):
        having = [report for report in reports if table in report.carried]
        rows = sum(report.rows[table] for report in having)
        key = having[0].carried[table].key
        found.append(TableFound(str(table), rows, key, tuple(report.shard for report in having)))
    return tuple(found)


def must_be_set_up(endpoint: Endpoint, rules: Sequence[str]) -> list[TableId]:
    """The tables of the shard that the rules take.

    Raises SourceError when a setting of the shard, or a privilege that the user lacks, keeps these tables from being
    followed in its log. Raises ConnectionLost.
    """
    with connect(endpoint) as session:
        account, variables = _asked(session)
        findings = check_settings(endpoint.shard, variables)
        chosen = [listed.table for listed in chosen_tables(session, rules)]
        access, filters = check_log_access(session, account)
        findings += [*access, *check_filters(endpoint.shard, *filters, chosen)]
        findings += check_replica(session, variables)
        findings += check_images(session, variables, chosen)
    for finding in findings:
        if finding.severity is Severity.ERROR:
            raise SourceError(f"shard {endpoint.shard}: {finding.found}: {finding.risk}; {finding.remedy}")
    return chosen


def must_take(rules: Sequence[str], manifest: Manifest) -> None:
    """Raise ConfigError for rules of a new feed that take no table."""
    taken = manifest.tables | {outside.table for outside in manifest.outside}
    idle = unmatched_rules(rules, taken)
    if idle:
        raise ConfigError("\n".join(f"{f.found}: {f.risk}; {f.remedy}" for f in idle))


def _examine_shard(endpoint: Endpoint, feed: Feed, standing: Manifest | None) -> ShardReport:
    """Of a feed that has begun, the tables that it carries; else all that the rules take."""
    findings: list[Finding] = []
    try:
        with connect(endpoint) as session:
            # Without it a global sql_select_limit would cut off the answers to SHOW as well (seen on 10.11).
            server = session.server
            account, variables = _asked(session)
            findings += check_settings(endpoint.shard, variables)
            if findings[0].severity is Severity.ERROR:  # another kind of server: nothing below would be true
                return ShardReport(endpoint.shard, tuple(findings), server)
            findings += [check_gtids(endpoint.shard, variables), *_clock_skew(session)]
            findings += _prepared(session)
            access, filters = _log_access(session, account)
            chosen = chosen_tables(session, feed.tables)
            taken = tuple(listed.table for listed in chosen)
            if standing is not None:
                carries = {shape.table for shape in standing.shapes}
                chosen = [listed for listed in chosen if listed.table in carries]
            names = tuple(listed.table for listed in chosen)
            readable, denied = check_select(session, account, names)
            access += check_replica(session, variables)
            access += check_strategy(session, variables, feed)
            access += check_images(session, variables, taken)
            refused, carried = check_tables(
                session,
                [listed for listed in chosen if listed.table in readable],
                skip=standing is None and feed.unusable is Unusable.SKIP,
            )
            findings += [*access, *denied, *refused, *check_filters(endpoint.shard, *filters, taken)]
    except CatchmentError as fault:
        findings.append(Finding(Severity.ERROR, endpoint.shard, str(fault)))
        return ShardReport(endpoint.shard, tuple(findings))
    found = f"{len(carried)} of {len(names)} chosen tables can be carried"
    findings.append(Finding(Severity.OK, endpoint.shard, found))
    unusable = tuple(table for table in names if table in readable and table not in carried)
    rows = {listed.table: listed.rows for listed in chosen}
    return ShardReport(endpoint.shard, tuple(findings), server, taken, carried, unusable, rows)


def _log_access(session: Session, account: str) -> tuple[list[Finding], tuple[str, str]]:
    """As check_log_access; what else the server says of its log is a finding, too."""
    try:
        return check_log_access(session, account)
    except ConnectionLost:
        raise
    except SourceError as said:
        remedy = "look into the server's error log; FLUSH BINARY LOGS begins a new file"
        shard = session.endpoint.shard
        return [Finding(Severity.ERROR, shard, str(said), "the log cannot be read", remedy)], ("", "")


def _asked(session: Session) -> tuple[str, dict[str, str]]:
    """The account that the server took us for, and its global variables."""
    variables = {str(name): str(value) for name, value in session.rows("SHOW GLOBAL VARIABLES")}
    row = session.row("SELECT CURRENT_USER()")
    return (str(row[0]) if row else ""), variables


def _prepared(session: Session) -> list[Finding]:
    mysql = session.server.mysql
    try:
        xids = open_xa(session)
    except ConnectionLost:
        raise
    except SourceError:
        if mysql:  # tells them to those with a privilege that access.py asks for
            return []
        raise
    if not xids:
        return []
    held = (
        "; until then tables are copied only while the log since is within copy.log_budget" if mysql else ""
    )
    return [
        Finding(
            Severity.WARNING,
            session.endpoint.shard,
            f"{len(xids)} XA transactions are prepared and open ({'; '.join(map(str, xids[:_NAMED_MAX]))})",
            "their rows count when they are committed: until then the log files in which they were prepared must "
            f"not be purged, and a new feed cannot begin{held}",
            "XA COMMIT or XA ROLLBACK those whose program has gone (XA RECOVER lists them)",
        )
    ]


def _clock_skew(session: Session) -> list[Finding]:
    """Compare the clocks at the middle of one round trip."""
    before = time.time()
    row = session.row("SELECT UNIX_TIMESTAMP(SYSDATE(6))")
    after = time.time()
    skew = float(row[0] if row else 0) - (before + after) / 2
    if abs(skew) <= max(CLOCK_SKEW_SECONDS_MAX, after - before):
        return []
    return [
        Finding(
            Severity.WARNING,
            session.endpoint.shard,
            f"its clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this host's",
            "lag and skew are shown wrong by as much; the rows are not affected",
            "keep the clocks in step, by NTP",
        )
    ]


def _same_servers(reports: Sequence[ShardReport]) -> list[Finding]:
    """Two shards on one server would copy its rows twice; equal server ids make GTIDs hard to tell apart."""
    by_server: dict[Server, list[str]] = defaultdict(list)
    by_id: dict[int, list[str]] = defaultdict(list)
    for report in reports:
        if report.server is not None:
            by_server[report.server].append(report.shard)
            if not report.server.mysql:  # its GTIDs are told apart by server_uuid
                by_id[report.server.server_id].append(report.shard)
    same = [
        Finding(
            Severity.ERROR, shards[-1], f"shards {' and '.join(shards)} are one server, {server}",
            "its rows would be copied twice", "correct host and port of one of them",
        )
        for server, shards in by_server.items()
        if len(shards) > 1
    ]  # fmt: skip
    alike = [
        Finding(
            Severity.WARNING, shards[-1], f"shards {' and '.join(shards)} have the same server_id {number}",
            "GTIDs of the two cannot be told apart", "SET GLOBAL server_id to a number of its own on each",
        )
        for number, shards in by_id.items()
        if len(shards) > 1 and not same
    ]  # fmt: skip
    return same + alike
