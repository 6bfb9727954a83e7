"""Which version of each plain table is which epoch, as a small Delta table of its own that SQL joins.

It is derived: what a crash leaves out, the next record of the table adds from its log.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from catchment import world
from catchment.model.epoch_number import epoch_number, epoch_text
from catchment.model.errors import SinkConflict
from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.files import make_directory, read_rows, write_parquet
from catchment.sink.delta.kept.record import kept_by_feed
from catchment.sink.delta.kept.told import told_on
from catchment.sink.delta.layout import epoch_app, versions_dir
from catchment.sink.delta.log.actions import Action, Add, MetaData, commit_info, protocol
from catchment.sink.delta.log.checkpoint import checkpoint
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile, Snapshot
from catchment.sink.delta.log.properties import CONFIGURATION
from catchment.sink.delta.log.schemas import schema_text
from catchment.sink.delta.plain.due import due
from catchment.sink.delta.statistics import delta_stats

SCHEMA = pa.schema(
    [
        ("feed", pa.string()),
        ("table_name", pa.string()),
        ("version", pa.int64()),
        ("epoch", pa.int64()),
        ("epoch_text", pa.string()),
        ("committed", pa.timestamp("us", tz="UTC")),
    ]
)
# Older versions are told no longer, but for kept epochs: the log of a table stays for two days.
_KEEP_SECONDS = 3 * 86_400
_ATTEMPTS = 50


class Recorded(msgspec.Struct, frozen=True):
    """The newest version of a table that is recorded, and its epoch."""

    version: int = -1
    epoch: int = 0


class Versions:
    """The versions of one feed's tables. It remembers what it has recorded."""

    def __init__(self, root: Location, feed: str) -> None:
        self._root, self._feed = root, feed
        self._log = DeltaLog(versions_dir(root))
        self._known: dict[str, Recorded] = {}
        self._known_at: int | None = None  # the version of the table that says so

    def record(self, plain: Mapping[TableId, DeltaLog]) -> None:
        """Add the versions of these tables that have come since they were recorded. Raises SinkError, SinkConflict."""
        for _ in range(_ATTEMPTS):
            on = self._log.newest()
            at = -1 if on is None else on.version
            if self._known_at != at:  # of nobody yet, or of others that have recorded since
                self._known, self._known_at = self._read(on), at
            known = dict(self._known)
            rows = [row for table, log in plain.items() for row in self._new(table, log, known)]
            if not rows:
                return
            if self._commit(on, rows):
                self._known, self._known_at = known, at + 1
                checkpoint(self._log)
                return
        raise SinkConflict(f"{self._log.directory}: other writers won {_ATTEMPTS} commits in a row; end them")

    def _new(self, table: TableId, log: DeltaLog, known: dict[str, Recorded]) -> Iterator[dict[str, Any]]:
        """Rows of the versions behind the one that is known, as far as the log has them; then they are known."""
        newest, app = log.newest(), epoch_app(self._feed, table)
        last = known.get(str(table), Recorded())
        for version in range(last.version + 1, -1 if newest is None else newest.version + 1):
            found = log.lines_of(version)
            if found is None:
                continue  # the entry was dropped: nobody reads the version any more
            epoch = next((line.txn.version for line in found if line.txn and line.txn.app_id == app), None)
            if epoch is None:
                epoch = last.epoch if version == last.version + 1 else _carried(log, app, version)
            written_ms = next((line.commit_info["timestamp"] for line in found if line.commit_info), 0)
            last = Recorded(version, epoch)
            yield {
                "feed": self._feed,
                "table_name": str(table),
                "version": version,
                "epoch": epoch,
                "epoch_text": epoch_text(epoch),
                "committed": written_ms * 1000,
            }
        known[str(table)] = last

    def _commit(self, on: Snapshot | None, rows: list[dict[str, Any]]) -> bool:
        """Add a file of rows; join small ones, and leave out old ones. False when another commit came first."""
        now_ms = world.now_us() // 1000
        oldest = epoch_number(now_ms // 1000 - _KEEP_SECONDS, 0)
        kept = kept_by_feed(self._root)
        make_directory(self._log.directory / "_delta_log")
        tables = [pa.Table.from_pylist(rows, SCHEMA)]
        actions: list[Action] = []
        if on is None:
            actions += [
                protocol([], ["appendOnly", "invariants"]),
                MetaData(str(uuid.uuid4()), schema_text(SCHEMA), now_ms, dict(CONFIGURATION)),
            ]
        else:
            joined = [file for files in due(on) for file in files]
            tables += [self._held(file) for file in joined]
            old = _old(on, oldest)
            gone = {file.path: file for file in [*joined, *old]}
            tables += [self._held(file) for file in old if kept and file not in joined]
            actions += [file.removed(now_ms, data_change=True) for file in gone.values()]
        held = pa.concat_tables(tables)
        actions.append(self._written(told_on(held, oldest, kept), now_ms))
        return self._log.put(on, commit_info("WRITE", now_ms), actions) is not None

    def _written(self, rows: pa.Table, now_ms: int) -> Add:
        path = f"{uuid.uuid4().hex}.parquet"
        file = write_parquet(self._log.directory / path, [rows], SCHEMA)
        stats = delta_stats(file.footer, ("feed", "table_name", "version", "epoch"))
        return Add(path, file.size, now_ms, True, stats)

    def _held(self, file: LakeFile) -> pa.Table:
        return read_rows(self._log.directory / file.path, schema=SCHEMA)

    def _read(self, on: Snapshot | None) -> dict[str, Recorded]:
        """The newest version of each of the feed's tables."""
        files = [] if on is None else [self._held(file) for file in on.files.values()]
        rows = pa.concat_tables([SCHEMA.empty_table(), *files])
        found: dict[str, Recorded] = {}
        for row in rows.filter(pc.equal(rows["feed"], self._feed)).sort_by("version").to_pylist():
            found[row["table_name"]] = Recorded(row["version"], row["epoch"])
        return found


def _carried(log: DeltaLog, app: str, version: int) -> int:
    """The epoch of a version in front of which entries are gone."""
    then = log.at(version)
    return 0 if then is None else then.transactions.get(app, 0)


def _old(on: Snapshot, oldest: int) -> list[LakeFile]:
    """Files of which all rows are older than an epoch."""
    return [file for file in on.files.values() if (file.bounds().max_values.get("epoch") or oldest) < oldest]
