"""What must hold of a stretch of log before its rows count, whoever reads it."""

import re
from collections.abc import Collection, Iterable

from catchment.flow.capture.catalog import read_table
from catchment.flow.capture.connect import connect, identify, must_be, pin
from catchment.flow.capture.offsets import open_xa
from catchment.flow.capture.stretch import Stretch
from catchment.flow.epoch.chain import must_continue
from catchment.flow.epoch.ddl import Columns, Stop, effect, is_dml
from catchment.flow.epoch.xa import hidden_from, prepared_after
from catchment.model.epoch import TableShape
from catchment.model.errors import CutMissed, Unsupported
from catchment.model.errors import IncompleteImage as IncompleteImageError
from catchment.model.position import LogOffset, Position, Xid, gtids_after
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.spark.floor import sealed_behind
from catchment.spark.work import Alteration
from catchment.wire.facts import CutOff, Ddl, Incident, IncompleteImage, Statement

_DROPS = re.compile(r"\bDROP\b", re.I)


def must_be_whole(shard: str, start: Position, stop: LogOffset | None, stretch: Stretch) -> None:
    """Raise unless the stretch goes on where `start` stood, came to `stop` (if there is one) and lacks
    nothing.

    Raises Diverged, CutMissed, IncompleteImage, Unsupported.
    """
    must_continue(shard, start, stretch.files[0].born if stretch.files else 0, stretch.first)
    if stop is not None and not stretch.reached_stop:
        raise CutMissed(
            f"shard {shard}: the log ends at {stretch.at}, before the planned {stop}; the epoch is "
            "planned again"
        )
    for fact in stretch.facts:
        if isinstance(fact, IncompleteImage):
            raise IncompleteImageError(
                f"shard {shard}, {fact.table} at {fact.at}: a row event lacks columns; set "
                "binlog_row_image=FULL globally and end the sessions that still write otherwise; then copy "
                "the table again with a new feed"
            )
        if isinstance(fact, Incident):
            raise Unsupported(
                f"shard {shard} at {fact.at}: the server logged an incident: its log is incomplete; copy "
                "again"
            )
    _check_cut_off(shard, stretch)


def _check_cut_off(shard: str, stretch: Stretch) -> None:
    """A group cut off at the end of a file is void only where the server crashed there: the next file says
    that a server start made it. Any other early end is an error to retry."""
    for fact in stretch.facts:
        if isinstance(fact, CutOff):
            names = [file.name for file in stretch.files]
            following = names.index(fact.at.file) + 1
            if following >= len(names) or stretch.files[following].created == 0:
                raise CutMissed(
                    f"shard {shard}: the log breaks off inside a group at {fact.at}; it is read again"
                )


def alterations(shard: str, chosen: Collection[TableId], stretch: Stretch) -> list[Alteration]:
    """What DDL in the stretch did to the chosen tables' columns; raises Unsupported where it cannot be
    followed.
    """
    found = []
    for fact in stretch.facts:
        if not isinstance(fact, Ddl | Statement):
            continue
        did = effect(fact.sql, fact.schema, chosen, mysql=fact.mysql)
        if is_dml(fact.sql) and (isinstance(did, Stop) or _hides_tables(fact.sql)):
            raise Unsupported(
                f"shard {shard} at {fact.at}: rows were changed by a statement that the log holds as text "
                f"({fact.sql[:80]!r}); set binlog_format=ROW, end the sessions that still write "
                "otherwise, and "
                "copy the tables again with a new feed"
            )
        if isinstance(did, Stop):
            raise Unsupported(f"shard {shard}, {did.table} at {fact.at}: {did.reason}; {did.way_out}")
        if isinstance(did, Columns):
            found.append(Alteration(did, fact.group))
    return found


def must_keep_keys(endpoint: Endpoint, shapes: Iterable[TableShape], stretch: Stretch) -> None:
    """Raise Unsupported when an index was dropped that told the rows of a table apart.

    The statement names an index, a shape has the key's columns: the catalog is asked, and what it says now is at
    least as new as the statement. Any statement that may drop something of the table is reason to ask: comments
    stand where they like, and a question too many does no harm.
    """
    drops = [fact for fact in stretch.facts if isinstance(fact, Ddl) and _DROPS.search(fact.sql)]
    asked = {
        shape.table: (shape, fact.at)
        for fact in drops
        for shape in shapes
        if shape.table.name.casefold() in fact.sql.replace("``", "`").casefold()
    }
    if not asked:
        return
    connection = connect(endpoint)
    try:
        pin(connection, endpoint)
        for shape, at in asked.values():
            try:
                key = read_table(connection, endpoint, shape.table).key
            except Unsupported:
                key = ()
            if key != shape.key:
                raise Unsupported(
                    f"shard {endpoint.shard}, {shape.table} at {at}: an index was dropped, and the table's key is "
                    f"({', '.join(key)}) instead of ({', '.join(shape.key)}) since, by which the lake tells rows "
                    "apart; copy it again with a new feed"
                )
    finally:
        connection.close()


def _hides_tables(sql: str) -> bool:
    """Whether a statement may change tables that it does not name, through a routine."""
    first = sql.lstrip(" \t\r\n(").partition(" ")[0].upper()
    return first in ("SELECT", "DO", "CALL", "WITH", "SET")


def arrived(
    endpoint: Endpoint,
    start: Position,
    known: LogOffset | None,
    stretch: Stretch,
    at: LogOffset,
    *,
    shown: bool = True,
) -> tuple[Position, LogOffset | None]:
    """The verified position at which a stretch from `start` has arrived, and what is sealed there; `known` was
    sealed at `start`. `shown`: snapshots have shown both ends of the stretch (epoch/seal.py).

    Raises Unsupported for an XA COMMIT of rows that are not known.
    """
    prepared = prepared_after(endpoint.shard, start.prepared, stretch.xa, known)
    # Asked after the log was read: what it does not list of the commits met is visible.
    committed = any(one.committed is not None for one in prepared)
    hidden = hidden_from(prepared, _recovered(endpoint, start) if committed else ())
    sealed = sealed_behind(
        endpoint,
        start.server,
        known,
        start.at,
        at,
        stretch.last if shown else None,
        stretch.facts,
        xa_over=hidden is None and bool(stretch.xa) and stretch.xa[-1].committed,
        hidden=hidden,
    )
    position = Position(
        at=at,
        born=stretch.files[-1].born if stretch.files else start.born,
        server=start.server,
        gtids=gtids_after(start.gtids, stretch.newest, stretch.named),
        prepared=prepared_after(endpoint.shard, prepared, (), sealed),
    )
    return position, sealed


def _recovered(endpoint: Endpoint, start: Position) -> list[Xid]:
    connection = connect(endpoint)
    try:
        must_be(identify(connection, endpoint), start.server, endpoint)
        return open_xa(connection, endpoint)
    finally:
        connection.close()
