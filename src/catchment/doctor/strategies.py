"""Whether a shard allows the strategy by which a feed copies rows, found out by doing it (docs/strategies.md)."""

from collections.abc import Mapping

from pymysql.converters import escape_string

from catchment.config import Feed
from catchment.doctor.finding import Finding, Severity
from catchment.doctor.table_checks import check_filters
from catchment.model.errors import ConfigError, ConnectionLost, SourceError
from catchment.model.source import Endpoint
from catchment.model.strategy import Strategy
from catchment.model.table import TableId
from catchment.source.marks import LOW, make_marks, remove_marks, write_mark
from catchment.source.offsets import log_status
from catchment.source.session import ACCESS, Session, answer_behind, connect

_REWIND = "or let copy.strategy be rewind, which writes nothing on the shards"
_PRIVILEGES = "SELECT, INSERT, UPDATE, DELETE, CREATE"


def must_allow(endpoint: Endpoint, feed: Feed) -> None:
    """Raise ConfigError where the shard does not allow the feed's strategy. Raises ConnectionLost."""
    if feed.copying.strategy is Strategy.REWIND:
        return
    with connect(endpoint) as session:
        variables = {str(name): str(value) for name, value in session.rows("SHOW GLOBAL VARIABLES")}
        findings = check_strategy(session, variables, feed)
    for one in findings:
        raise ConfigError(f"shard {endpoint.shard}: {one.found}: {one.risk}; {one.remedy}")


def check_strategy(session: Session, variables: Mapping[str, str], feed: Feed) -> list[Finding]:
    """What keeps a shard from the feed's strategy. Marks are tried by writing one. Raises ConnectionLost."""
    strategy, marks = feed.copying.strategy, feed.copying.marks_table
    if strategy is Strategy.REWIND:
        return []
    if session.server.mysql:
        return [_mysql(session, strategy)]
    if strategy is Strategy.SNAPSHOT:
        return []
    shard = session.endpoint.shard
    return (
        _replica(session, variables)
        or _read_only(shard, variables)
        or _galera(shard, variables)
        or _filtered(session, marks)
        or _engine(session, marks)
        or _tried(session, marks, feed.name)
    )


def _mysql(session: Session, strategy: Strategy) -> Finding:
    risk = (
        "MySQL tells no place in the log with a snapshot"
        if strategy is Strategy.SNAPSHOT
        else "that all in front of a mark is visible behind it is proven on MariaDB alone"
    )
    return _error(session.endpoint.shard, f"copy.strategy is {strategy.value} on MySQL", risk, _REWIND[3:])


def _replica(session: Session, variables: Mapping[str, str]) -> list[Finding]:
    """Whether the server replicates, or did; the feed's user may not ask SHOW REPLICA STATUS."""
    position, row = (
        variables.get("gtid_slave_pos", ""),
        session.row("SHOW GLOBAL STATUS LIKE 'Slaves_running'"),
    )
    running = int(row[1]) if row is not None else 0
    if not position and not running:
        return []
    found = f"the server is or was a replica (gtid_slave_pos {position or 'empty'}, Slaves_running {running})"
    risk = "a mark would be a transaction that its source does not have, and copy.strategy is watermark"
    remedy = f"name its source as host; on a server that replicates no more SET GLOBAL gtid_slave_pos=''; {_REWIND}"
    return [_error(session.endpoint.shard, found, risk, remedy)]


def _read_only(shard: str, variables: Mapping[str, str]) -> list[Finding]:
    set_ = [
        name
        for name in ("read_only", "innodb_read_only")
        if variables.get(name, "OFF").upper() not in ("OFF", "0")
    ]
    risk = "copy.strategy watermark writes marks"
    return [
        _error(shard, f"{name} is {variables[name]}", risk, f"SET GLOBAL {name}=OFF; {_REWIND}")
        for name in set_
    ]


def _galera(shard: str, variables: Mapping[str, str]) -> list[Finding]:
    if variables.get("wsrep_on", "OFF").upper() not in ("ON", "1"):
        return []
    risk = "that all in front of a mark is visible behind it is not proven there"
    return [
        _error(shard, "copy.strategy is watermark on a node of Galera (wsrep_on is ON)", risk, _REWIND[3:])
    ]


def _filtered(session: Session, marks: TableId) -> list[Finding]:
    row = log_status(session)
    only, ignored = ("", "") if row is None else (str(row[2]), str(row[3]))
    return [
        _error(one.shard, one.found, "marks would not be in the log", f"{one.remedy}; {_REWIND}")
        for one in check_filters(session.endpoint.shard, only, ignored, [marks])
    ]


def _engine(session: Session, marks: TableId) -> list[Finding]:
    """Whether a table of that name is another one: what is not InnoDB says nothing of other commits."""
    row = session.row(
        "SELECT engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s",
        (marks.schema, marks.name),
    )
    if row is None or str(row[0]).lower() == "innodb":
        return []
    risk = "a mark in it proves nothing of what is visible"
    return [
        _error(
            session.endpoint.shard,
            f"{marks} is a table of {row[0]}",
            risk,
            f"name another one in copy.marks; {_REWIND}",
        )
    ]


def _tried(session: Session, marks: TableId, feed: str) -> list[Finding]:
    """Make the table, write a mark and take it away. Raises ConnectionLost."""
    try:
        make_marks(session, marks)
        write_mark(session, marks, feed, LOW)
        remove_marks(session, marks, feed)
    except ConnectionLost:
        raise
    except SourceError as refused:
        code, text = answer_behind(refused)
        if code == 0:
            raise
        found, risk = f"no mark can be written to {marks}: {text}", "copy.strategy watermark writes marks"
        return [_error(session.endpoint.shard, found, risk, f"{_remedy(session, marks, code)}; {_REWIND}")]
    return []


def _remedy(session: Session, marks: TableId, code: int) -> str:
    """What lets the user write marks. A user without rights on a schema is not told that there is none."""
    schema = f"`{marks.schema}`"
    grant = f"GRANT {_PRIVILEGES} ON {schema}.* TO {_grantee(session)}"
    if (
        session.row("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", (marks.schema,))
        is None
    ):
        return f"CREATE DATABASE {schema}, then {grant}"
    return grant if code in ACCESS else "name another table in copy.marks"


def _grantee(session: Session) -> str:
    row = session.row("SELECT CURRENT_USER()")
    user, _, host = str(row[0] if row else "@").rpartition("@")
    return f"'{escape_string(user)}'@'{escape_string(host)}'"


def _error(shard: str, found: str, risk: str, remedy: str) -> Finding:
    return Finding(Severity.ERROR, shard, found, risk, remedy)
