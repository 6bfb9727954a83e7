"""Checks of a server's global variables. Pure: variables in, findings out (DESIGN 4 and 8)."""

import re
from collections.abc import Callable, Mapping

import msgspec

from catchment.doctor.finding import Finding, Severity

VERSION_MIN = (10, 5)
MYSQL_MIN = (8, 0, 1)
RETENTION_SECONDS_MIN = 86_400
_NO_LIMIT = str(2**64 - 1)
_DAY_SECONDS = 86_400

Variables = Mapping[str, str]


class _Setting(msgspec.Struct, frozen=True):
    """A variable that must satisfy `good`; one that the server does not have is no fault."""

    name: str
    good: Callable[[str], bool]
    severity: Severity
    risk: str
    remedy: str


def _is(*values: str) -> Callable[[str], bool]:
    return lambda value: value.upper() in values


_SETTINGS = (
    _Setting(
        "log_bin", _is("ON", "1"), Severity.ERROR,
        "without a binary log, changes cannot be followed",
        "start the server with log_bin",
    ),
    _Setting(
        "binlog_format", _is("ROW"), Severity.ERROR,
        "statements in the log do not say which rows they changed",
        "SET GLOBAL binlog_format=ROW; sessions keep their old format until they connect again",
    ),
    _Setting(
        # table_checks.py says of each table what NOBLOB leaves out.
        "binlog_row_image", _is("FULL", "NOBLOB"), Severity.ERROR,
        "row events hold the key and the changed columns only, and a row cannot be told from them",
        "SET GLOBAL binlog_row_image=FULL; it is a session setting too: sessions that exist keep "
        "theirs until they connect again",
    ),
    _Setting(
        "binlog_row_metadata", _is("FULL"), Severity.WARNING,
        "rows in the log do not name their columns: the feed keeps the definitions itself and follows the DDL in the "
        "log; an ALTER that does not reach the log (sql_log_bin=0) stops it, or passes columns of one type for one "
        "another",
        "SET GLOBAL binlog_row_metadata=FULL",
    ),
    _Setting(
        "binlog_checksum", _is("CRC32"), Severity.WARNING,
        "damage to the log is not noticed",
        "SET GLOBAL binlog_checksum=CRC32",
    ),
    _Setting(
        "server_id", lambda value: value != "0", Severity.ERROR,
        "a server with id 0 refuses to send its log",
        "SET GLOBAL server_id to a number of its own",
    ),
    _Setting(
        "binlog_storage_engine", _is(""), Severity.ERROR,
        "a log kept in InnoDB has no files and offsets, which the feed's cuts are made of",
        "start the server without binlog_storage_engine",
    ),
    _Setting(
        "sync_binlog", _is("1"), Severity.WARNING,
        "after a power cut the server can forget transactions that are in the lake already",
        "SET GLOBAL sync_binlog=1",
    ),
    _Setting(
        "innodb_flush_log_at_trx_commit", _is("1", "3"), Severity.WARNING,
        "after a crash the tables can lack transactions that are in the log, and so in the lake: verify then",
        "SET GLOBAL innodb_flush_log_at_trx_commit=1",
    ),
    _Setting(
        "sql_select_limit", _is(_NO_LIMIT), Severity.WARNING,
        "it cuts results off without an error; the feed's sessions override it, other readers' do not",
        "SET GLOBAL sql_select_limit=DEFAULT",
    ),
    _Setting(
        "slave_run_triggers_for_rbr", _is("NO", "LOGGING", "ENFORCE"), Severity.WARNING,
        "on a replica, rows that triggers change are in no log",
        "SET GLOBAL slave_run_triggers_for_rbr=NO or LOGGING",
    ),
    _Setting(
        "group_replication_group_name", _is(""), Severity.WARNING,
        "in Group Replication every member has a log of its own: the feed stops when its member is replaced",
        "name the member itself as host, not a router",
    ),
    _Setting(
        "wsrep_on", _is("OFF", "0"), Severity.WARNING,
        "on Galera every node has a log of its own: the feed stops when its node is replaced",
        "name the node itself as host, not a balancer",
    ),
)  # fmt: skip


def check_settings(shard: str, variables: Variables) -> list[Finding]:
    """Findings about one server's global variables."""
    findings = [_mysql_version(shard, variables) if is_mysql(variables) else _version(shard, variables)]
    if findings[0].severity is Severity.ERROR:
        return findings
    for setting in _SETTINGS:
        value = variables.get(setting.name)
        if value is not None and not setting.good(value):
            found = f"{setting.name} is {value or 'empty'}"
            findings.append(Finding(setting.severity, shard, found, setting.risk, setting.remedy))
    return [*findings, *_replica(shard, variables), _retention(shard, variables)]


def is_mysql(variables: Variables) -> bool:
    """Whether the variables are those of MySQL (MariaDB names itself in one of two)."""
    return "mariadb" not in (variables.get("version", "") + variables.get("version_comment", "")).lower()


def mysql_number(variables: Variables) -> tuple[int, ...]:
    """MySQL's version as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", variables.get("version", ""))[:3])


def retention_seconds(variables: Variables) -> float | None:
    """How long the server keeps its log; None without a limit in time."""
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    days = float(variables.get("expire_logs_days") or 0)
    return seconds or days * _DAY_SECONDS or None


def _version(shard: str, variables: Variables) -> Finding:
    version = variables.get("version", "")
    # Servers that act as replicas of old MySQL ones say `5.5.5-10.11...`.
    match = re.match(r"(?:5\.5\.5-)?(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < VERSION_MIN:
        return Finding(
            Severity.ERROR, shard, f"the server is MariaDB {version}",
            "it lacks binlog_row_metadata and BINLOG MONITOR", "upgrade to MariaDB 10.5 or later",
        )  # fmt: skip
    return Finding(Severity.OK, shard, f"the server is MariaDB {version}")


def _mysql_version(shard: str, variables: Variables) -> Finding:
    version = variables.get("version", "")
    if mysql_number(variables) < MYSQL_MIN:
        return Finding(
            Severity.ERROR, shard, f"the server is MySQL {version}",
            "it lacks binlog_row_metadata", "upgrade to MySQL 8.0 or later",
        )  # fmt: skip
    return Finding(Severity.OK, shard, f"the server is MySQL {version}")


def check_gtids(shard: str, variables: Variables) -> Finding:
    """How the server gives GTIDs. To follow the log they are not needed, to copy from MySQL they are."""
    if not is_mysql(variables):
        return _gtid(shard, variables)
    mode = variables.get("gtid_mode", "")
    if mode == "ON":
        return Finding(Severity.OK, shard, "gtid_mode is ON")
    return Finding(
        Severity.ERROR,
        shard,
        f"gtid_mode is {mode}",
        "MySQL then does not tell when a logged transaction is visible, so rows cannot be copied without a lock",
        "SET GLOBAL enforce_gtid_consistency=ON, then gtid_mode=OFF_PERMISSIVE, ON_PERMISSIVE and ON, one after "
        "the other (no restart is needed); or name a replica that has GTIDs as host",
    )


def _replica(shard: str, variables: Variables) -> list[Finding]:
    """The feed's user may not ask SHOW REPLICA STATUS; that it has a replica's position is enough."""
    position = variables.get("gtid_slave_pos", "")
    if not position or variables.get("log_slave_updates", "ON").upper() in ("ON", "1"):
        return []
    return [
        Finding(
            Severity.ERROR,
            shard,
            f"the server is or was a replica (gtid_slave_pos {position}) and log_slave_updates is OFF",
            "changes that it replicates are not in its own log and never reach the lake",
            "start the server with log_slave_updates, or name its primary as host; "
            "on a primary that is no replica any more: SET GLOBAL gtid_slave_pos=''",
        )
    ]


def _gtid(shard: str, variables: Variables) -> Finding:
    domain, strict = variables.get("gtid_domain_id", "?"), variables.get("gtid_strict_mode", "?")
    return Finding(Severity.OK, shard, f"gtid_domain_id is {domain}, gtid_strict_mode is {strict}")


def _retention(shard: str, variables: Variables) -> Finding:
    kept = retention_seconds(variables)
    total = int(variables.get("max_binlog_total_size") or 0)
    if variables.get("binlog_expire_logs_auto_purge", "ON").upper() == "OFF":
        kept = None
    if kept is not None and kept < RETENTION_SECONDS_MIN:
        return Finding(
            Severity.WARNING,
            shard,
            f"the log is kept for {kept / 3600:.1f} hours",
            "a feed that is paused for longer must copy everything again",
            "SET GLOBAL binlog_expire_logs_seconds (or expire_logs_days) to two days or more",
        )
    if total:
        return Finding(
            Severity.WARNING,
            shard,
            f"max_binlog_total_size keeps {total >> 20} MiB of log, however little time that is",
            "a burst of writes during a pause purges log that the feed needs: it must copy everything again",
            "SET GLOBAL max_binlog_total_size to what a pause of two days writes",
        )
    limit = "until it is purged by hand" if kept is None else f"for {kept / _DAY_SECONDS:.1f} days"
    return Finding(Severity.OK, shard, f"the log is kept {limit}")
