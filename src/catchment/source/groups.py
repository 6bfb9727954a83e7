"""What the groups of a stretch of log amount to, as they come."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from catchment.model.gtidset import GtidSet, UuidGtid, uuid_text
from catchment.model.position import GroupKind, Gtid, LastGroup, LogOffset

_Columns = dict[str, "np.ndarray[tuple[int], np.dtype[np.int64]]"]
_KINDS = tuple(GroupKind)
# So many groups are added without arrays.
_FEW = 32
_XA = np.array([_KINDS.index(GroupKind.XA_PREPARE), _KINDS.index(GroupKind.XA_END)], dtype=np.uint8)


@dataclass(frozen=True)
class GroupPlace:
    """Where a group begins and ends, and when it was written, in seconds since 1970."""

    start: LogOffset
    end: LogOffset
    seconds: int


@dataclass
class Tally:
    """Sums up the batches of groups as they come. It ends with the first that ends `budget` bytes or more behind the
    start, or in front of the first written later than `until`. `first`, `newest`, `newest_before`,
    `named`, `last`, `boundary` and `held` as Stretch has them."""

    epoch: LogOffset | None
    budget: int | None = None
    until: int | None = None
    count: int = 0
    bytes: int = 0
    last: LastGroup | None = None
    last_file: int = 0
    boundary: int | None = None
    first: UuidGtid | None = None
    named: GtidSet = field(default_factory=GtidSet)
    newest: dict[int, Gtid] = field(default_factory=dict)
    newest_before: dict[int, Gtid] = field(default_factory=dict)
    xa: dict[int, GroupPlace] = field(default_factory=dict)
    event_time: int = 0
    held: int | None = None

    @property
    def full(self) -> bool:
        """Whether the budget is used up, or a group is held back."""
        return self.held is not None or (self.budget is not None and self.bytes >= self.budget)

    def add(self, batch: pa.RecordBatch, files: list[str]) -> pa.RecordBatch:
        """Take the batch, or as much of it as the budget allows; what was taken."""
        if batch.num_rows == 0:
            return batch
        if batch.num_rows <= _FEW:
            return self._add_few(batch, files)
        batch = self._within_budget(batch)
        if batch.num_rows == 0:
            return batch
        column = {
            field.name: batch.column(field.name).to_numpy()
            for field in batch.schema
            if pa.types.is_integer(field.type)
        }
        self._named(batch)
        self._gtids(column)
        if self.epoch is not None and self.boundary is None:
            numbers = np.array([LogOffset(name, 0).number for name in files], dtype=np.int64)[column["file"]]
            beyond = (numbers > self.epoch.number) | (
                (numbers == self.epoch.number) & (column["end"] > self.epoch.offset)
            )
            if beyond.any():
                self.boundary = int(column["ordinal"][int(np.argmax(beyond))])
        for row in np.flatnonzero(np.isin(column["kind"], _XA)):
            self.xa[int(column["ordinal"][row])] = _place(column, int(row), files)
        # Not the number of rows: a group that was cut off has an ordinal and no row.
        self.count = int(column["ordinal"][-1]) + 1
        self.event_time = int(column["timestamp"][-1])
        self.last_file = int(column["file"][-1])
        place = _place(column, -1, files)
        kind = _KINDS[int(column["kind"][-1])]
        self.last = LastGroup(place.start, place.end, kind, _gtid(column, -1))
        return batch

    def _add_few(self, batch: pa.RecordBatch, files: list[str]) -> pa.RecordBatch:
        """The same, one group after the other: arrays take longer for one than for a thousand."""
        taken = 0
        for group in batch.to_pylist():
            if self.full:
                break
            if self.until is not None and group["timestamp"] > self.until:
                self.held = group["timestamp"]
                break
            self._add_one(group, files, first=not taken)
            taken += 1
        return batch.slice(0, taken)

    def _add_one(self, group: dict[str, Any], files: list[str], *, first: bool) -> None:
        """`first`: of its batch."""
        self.bytes += group["end"] - group["start"]
        if group["uuid"] is not None:
            gtid = UuidGtid(_uuid(group["uuid"]), group["tag"] or "", group["sequence"])
            self.first = gtid if first and self.first is None else self.first
            self.named = self.named.union(GtidSet.of([(gtid.uuid, gtid.tag, (gtid.number, gtid.number))]))
        file = LogOffset(files[group["file"]], group["end"])
        place = GroupPlace(replace(file, offset=group["start"]), file, group["timestamp"])
        if self.epoch is not None and self.boundary is None:
            beyond = (file.number, file.offset) > (self.epoch.number, self.epoch.offset)
            self.boundary = group["ordinal"] if beyond else None
        if group["kind"] in _XA:
            self.xa[group["ordinal"]] = place
        self.count = group["ordinal"] + 1
        self.event_time, self.last_file = group["timestamp"], group["file"]
        self.newest_before = dict(self.newest)
        named = Gtid(group["domain"], group["server_id"], group["sequence"])
        self.newest[named.domain] = named
        self.last = LastGroup(place.start, place.end, _KINDS[group["kind"]], named)

    def _within_budget(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.full:
            return batch.slice(0, 0)
        sizes = np.cumsum(batch.column("end").to_numpy() - batch.column("start").to_numpy()) + self.bytes
        if self.budget is not None:
            sizes = sizes[: int(np.searchsorted(sizes, self.budget)) + 1]
        if self.until is not None:
            later = np.flatnonzero(batch.column("timestamp").to_numpy()[: len(sizes)] > self.until)
            if len(later):
                self.held = int(batch.column("timestamp")[int(later[0])].as_py())
                sizes = sizes[: int(later[0])]
        self.bytes = int(sizes[-1]) if len(sizes) else self.bytes
        return batch.slice(0, len(sizes))

    def _gtids(self, column: _Columns) -> None:
        last = len(column["domain"]) - 1
        domains, newest = np.unique(column["domain"][:last][::-1], return_index=True)
        for domain, row in zip(domains, newest, strict=True):
            self.newest[int(domain)] = _gtid(column, last - 1 - int(row))
        self.newest_before = dict(self.newest)
        self.newest[int(column["domain"][last])] = _gtid(column, last)

    def _named(self, batch: pa.RecordBatch) -> None:
        """The GTIDs of MySQL; a batch has few origins and, mostly, one run of numbers for each."""
        named = batch.select(["uuid", "tag", "sequence"]).filter(pc.is_valid(batch.column("uuid")))
        if named.num_rows == 0:
            return
        (uuids, ids), (tags, marks) = (_coded(named.column(name)) for name in ("uuid", "tag"))
        numbers = named.column("sequence").to_numpy()
        if self.first is None and batch.column("uuid")[0].is_valid:
            self.first = UuidGtid(_uuid(uuids[ids[0]]), tags[marks[0]] or "", int(numbers[0]))
        found = []
        for code in np.unique(ids * len(tags) + marks):
            mine = np.unique(numbers[(ids * len(tags) + marks) == code])
            breaks = np.flatnonzero(np.diff(mine) != 1)
            firsts, lasts = mine[np.r_[0, breaks + 1]], mine[np.r_[breaks, len(mine) - 1]]
            origin = _uuid(uuids[code // len(tags)]), tags[code % len(tags)] or ""
            found += [(*origin, (int(a), int(b))) for a, b in zip(firsts, lasts, strict=True)]
        self.named = self.named.union(GtidSet.of(found))


def _coded(column: pa.Array) -> tuple[list[Any], Any]:
    """The distinct values of a column, null among them, and which one each row has."""
    coded = column.dictionary_encode(null_encoding="encode")
    return coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64)


def _uuid(octets: bytes) -> str:
    return uuid_text(octets.hex())


def _gtid(column: _Columns, row: int) -> Gtid:
    return Gtid(int(column["domain"][row]), int(column["server_id"][row]), int(column["sequence"][row]))


def _place(column: _Columns, row: int, files: list[str]) -> GroupPlace:
    """Start, end and time of a group."""
    file = files[int(column["file"][row])]
    start, end = LogOffset(file, int(column["start"][row])), LogOffset(file, int(column["end"][row]))
    return GroupPlace(start, end, int(column["timestamp"][row]))
