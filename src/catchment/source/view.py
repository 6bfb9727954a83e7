"""A consistent snapshot that a session of a shard holds: rows as they were, after the log has told that they went.

It costs the server the old versions of rows that change meanwhile, so it is held for a moment. It locks no row. But
from its first SELECT of a table on an ALTER TABLE waits for it: MariaDB with a log keeps the metadata lock until the
transaction ends, also behind ROLLBACK TO SAVEPOINT (seen on 10.11).
"""

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from catchment import world
from catchment.model.chunk import Chunk
from catchment.model.errors import ConnectionLost, ServerSaid, SourceError
from catchment.model.position import LogOffset, Prepared, Server
from catchment.model.source import Endpoint
from catchment.model.table import Table
from catchment.source.chosen_keys import with_values
from catchment.source.offsets import snapshot_offset, snapshot_session
from catchment.source.select import key_query, select_chunk, stream
from catchment.source.session import Session, connect

# A server ends a view that its holder forgets, and sooner where statements may wait for it.
IDLE_SECONDS: Final = 600
_USED_SECONDS: Final = 5
# Of rows that one question may answer.
ROWS_BYTES_MAX: Final = 128 << 20
_VALUES = 500


class TooManyRows(SourceError):
    """A question has more rows for an answer than may be held."""


@dataclass(eq=False)
class View:
    """`floor`: the log up to there is visible to it, but for the XA transactions `prepared` that are committed later;
    `told`: nothing behind there is. `since`: when it was opened, in steady seconds. `used`: statements may wait for it.

    What asks raises CatchmentError. One after which the session is of no use leaves it `lost`.
    """

    floor: LogOffset
    prepared: tuple[Prepared, ...]
    told: LogOffset
    since: float
    _session: Session
    used: bool = field(default=False, init=False)
    lost: bool = field(default=False, init=False)

    def having(self, table: Table, values: pa.Table) -> pa.Table:
        """The rows of a table that have one of these rows of values in the columns of their names."""
        batches: list[pa.RecordBatch] = []
        schema = None
        for start in range(0, values.num_rows, _VALUES):
            sql, parameters = key_query(table, with_values(table, values[start : start + _VALUES]))

            def keep(rows: pa.RecordBatch) -> None:
                batches.append(rows)
                if sum(one.nbytes for one in batches) > ROWS_BYTES_MAX:
                    raise TooManyRows(
                        f"shard {self._session.endpoint.shard}, {table.id}: more than {ROWS_BYTES_MAX >> 20} MiB of "
                        "rows went with their parents at once"
                    )

            with _Asking(self):
                schema = stream(self._session, table.columns, sql, parameters, keep)
        assert schema is not None, "ask for some values"
        return pa.Table.from_batches(batches, schema)

    def chunk(self, table: Table, chunk: Chunk) -> pa.Table:
        """The rows of a chunk."""
        with _Asking(self):
            return select_chunk(self._session, table, chunk)

    def close(self) -> None:
        """Let go of it."""
        self._session.abandon()
        self.lost = True


@dataclass(frozen=True)
class _Asking:
    """A SELECT of a view."""

    view: View

    def __enter__(self) -> None:
        view = self.view
        if view.lost:
            raise ConnectionLost("a consistent snapshot is held no more")
        if not view.used:
            view.used = True
            view._session.run(f"SET SESSION wait_timeout = {_USED_SECONDS}")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, ServerSaid):
            self.view.close()


def opened_view(endpoint: Endpoint, server: Server, floor: LogOffset, prepared: tuple[Prepared, ...]) -> View:
    """A view of now. `floor`: what is proven visible, and the XA transactions that are known there.

    Servers write a transaction to their log before they make it visible: what a view shows lies in front of where the
    log ends after it was opened. Raises SourceError.
    """
    session = connect(endpoint, server, snapshots=True)
    try:
        session.run(f"SET SESSION wait_timeout = {IDLE_SECONDS}")
        session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        with snapshot_session(endpoint, server) as other:
            told = snapshot_offset(other)
    except BaseException:
        session.abandon()
        raise
    return View(floor, prepared, told, world.steady_seconds(), session)
