"""Marks in a shard's log: a row of a table of Catchment's own, written for its place in the log alone.

A mark is a commit of its own, and the server commits in the order of its log. When a mark's COMMIT has returned, all
that was logged in front of it is visible, but for XA COMMITs (docs/decisions/2026-11-25-strategies.md).
"""

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from catchment import world
from catchment.model.definition import DefinedColumn, Definition
from catchment.model.image import GROUP, SIDE
from catchment.model.position import Server
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.bounds import source_name
from catchment.source.session import Session, connect
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Images

# A commit that the server holds back holds back the epoch, too, for so long at most.
MARK_SECONDS = 10

LOW, HIGH = 1, 2
_AFTER = pa.scalar(1, pa.uint8())
_KEY = ("feed",)
# `feed` as feed files name it, `mark` as `world.token` makes it, `side` is LOW or HIGH.
_COLUMNS = (
    DefinedColumn("feed", "varchar(128)", "ascii", nullable=False),
    DefinedColumn("mark", "char(32)", "ascii", nullable=False),
    DefinedColumn("side", "tinyint(4)", nullable=False),
    DefinedColumn("created", "timestamp", nullable=False),
    DefinedColumn("updated", "timestamp", nullable=False),
)


def marks_session(endpoint: Endpoint, expected: Server | None = None) -> Session:
    """A session for marks."""
    return connect(endpoint, expected, read_seconds=MARK_SECONDS)


def make_marks(session: Session, table: TableId) -> None:
    """Have the table of marks, with a row for each feed. Raises SourceError where the user may not."""
    session.run(
        f"CREATE TABLE IF NOT EXISTS {source_name(table)} ("
        "feed VARCHAR(128) CHARACTER SET ascii NOT NULL PRIMARY KEY, "
        "mark CHAR(32) CHARACTER SET ascii NOT NULL, "
        "side TINYINT NOT NULL COMMENT '1: low, 2: high', "
        "created TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, "
        "updated TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
        ") ENGINE=InnoDB COMMENT 'Marks of Catchment: docs/strategies.md'"
    )


def write_mark(session: Session, table: TableId, feed: str, side: int) -> str:
    """Commit a mark that nobody has written before; its name."""
    mark = world.token()
    session.run(
        f"INSERT INTO {source_name(table)} (feed, mark, side) VALUES (%s, %s, %s) "
        "ON DUPLICATE KEY UPDATE mark = VALUES(mark), side = VALUES(side)",
        (feed, mark, side),
    )
    return mark


def remove_marks(session: Session, table: TableId, feed: str) -> None:
    """Take the feed's row away."""
    session.run(f"DELETE FROM {source_name(table)} WHERE feed = %s", (feed,))


def with_marks(wanted: Wanted, table: TableId) -> Wanted:
    """The same rows, and those of the table of marks. A log that does not describe itself is told how we make it."""
    definitions = dict(wanted.definitions)
    if definitions:
        definitions[table] = Definition(table, _COLUMNS, _KEY, "ascii")
    return replace(wanted, keys={**wanted.keys, table: _KEY}, definitions=definitions)


def marks_in(read: Images, sought: Collection[str]) -> dict[str, int]:
    """Those of the marks that images of their table show, with the groups in which they stand."""
    rows = pa.Table.from_batches([read.batch]).filter(pc.equal(read.batch.column(SIDE), _AFTER))
    written = rows.filter(pc.is_in(rows.column("mark"), pa.array(sought, pa.string())))
    return dict(zip(written.column("mark").to_pylist(), written.column(GROUP).to_pylist(), strict=True))
