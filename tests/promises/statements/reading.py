"""What Catchment makes of a piece of log: that it ends the run, or which rows of the chosen tables change."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from catchment.demo.server import PrivateServer
from catchment.model.errors import CatchmentError
from catchment.model.gtidset import GtidSet
from catchment.model.image import SEQ, SIDE
from catchment.model.position import GtidList, LogOffset, Position
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.readers.checks import alterations, must_be_whole
from catchment.rewind.states import AFTER, without_voids
from catchment.schema.events import SchemaEvents
from catchment.source.log import read_log
from catchment.source.session import connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Ddl, Statement
from tests.promises.statements.stage import CHOSEN, Content


@dataclass(frozen=True)
class Verdict:
    """`stopped`: why the run ends; empty when it goes on, with the rows that the log then makes of the tables.

    `told`: the texts in this piece of log; `ddl`: whether some stand outside of transactions, or none were read.
    """

    stopped: str
    rows: Content = field(default_factory=dict)
    told: tuple[str, ...] = ()
    ddl: bool = True


class Reader:
    """Reads pieces of one server's log as a feed with the chosen tables of the stage does."""

    def __init__(self, server: PrivateServer) -> None:
        self._endpoint = Endpoint("s", server.host, server.port, "catchment", server.password)
        with connect(self._endpoint) as session:
            self._server = session.server

    def verdict(self, start: tuple[str, int], end: tuple[str, int], before: Content) -> Verdict:
        """What is made of the log between two ends of groups; `before`: the rows of the tables at `start`."""
        images: list[tuple[Table, pa.Table]] = []
        told: tuple[str, ...] = ()
        ddl = True
        try:
            stretch = self._read(LogOffset(*start), LogOffset(*end), images)
            told = tuple(fact.sql for fact in stretch.facts if isinstance(fact, Ddl | Statement))
            ddl = any(isinstance(fact, Ddl) for fact in stretch.facts)
            at = LogOffset(*start), LogOffset(*end)
            events = SchemaEvents(CHOSEN).of(stretch.facts)
            altered = alterations("s", CHOSEN, StoredAt(self._endpoint, self._server, *at, events))
        except CatchmentError as why:
            return Verdict(f"{type(why).__name__}: {why}", told=told, ddl=ddl)
        rows = _applied(before, images, stretch)
        for alteration in altered:
            rows = _altered(rows, alteration.effect)
        return Verdict("", rows, told, ddl)

    def _read(self, start: LogOffset, end: LogOffset, images: list[tuple[Table, pa.Table]]) -> Stretch:
        wanted = Wanted({table: ("id",) for table in CHOSEN})
        with read_log(self._endpoint, self._server, start, end, wanted) as log:
            images += [(read.table, pa.Table.from_batches([read.batch])) for read in log.images()]
        stretch = log.stretch
        gtids = GtidSet() if self._server.mysql else GtidList()
        must_be_whole("s", Position(start, 0, self._server, gtids), end, stretch)
        return stretch


def _applied(before: Content, images: list[tuple[Table, pa.Table]], stretch: Stretch) -> Content:
    after: Content = {table: None if rows is None else dict(rows) for table, rows in before.items()}
    changes = []
    for table, batch in images:
        names = [column.name for column in table.columns]
        for row in without_voids(batch, stretch.voids).to_pylist():
            changes.append((row[SEQ], row[SIDE], table.id, {name: row[name] for name in names}))
    for _, side, name, row in sorted(changes, key=lambda change: change[0]):
        rows = after.get(name)
        if rows is None:
            continue
        key = int(row["id"])
        if side == AFTER:
            rows[key] = row
        else:
            rows.pop(key, None)
    return after


def _altered(rows: Content, effect: Any) -> Content:
    """The rows as ALTERs leave them: columns go, others come as NULL. Rows of the log may be of before or after."""
    mine: TableId = effect.table
    content = rows.get(mine)
    if content is None:
        return rows
    return {
        **rows,
        mine: {
            key: {
                **{name: value for name, value in row.items() if name not in effect.dropped},
                **{name: row.get(name) for name in effect.added},
            }
            for key, row in content.items()
        },
    }
