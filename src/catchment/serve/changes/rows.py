"""What a reader of the source sees beside a table's columns: change columns named as in a change data feed."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.gtidset import uuid_text
from catchment.model.image import CHANGE, GROUP, SEQ
from catchment.rewind.change_types import INSERT
from catchment.wire.log.groups import SCHEMA

CHANGE_TYPE, VERSION, TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
SHARD, GTID, ORDER = "_shard", "_gtid", "_order"

CHANGE_FIELDS = (
    pa.field(CHANGE_TYPE, pa.string()),
    pa.field(VERSION, pa.int64()),
    pa.field(TIMESTAMP, pa.timestamp("us", tz="UTC")),
    pa.field(SHARD, pa.string()),
    pa.field(GTID, pa.string()),
    pa.field(ORDER, pa.int64()),
)
_NO_TEXT = pa.scalar(None, pa.string())
# So many groups are told apart without Arrow.
_FEW = 32
_GROUP_SHIFT = 34  # no micro-batch has so many images, or 2**29 groups


def copied_rows(rows: pa.Table, shard: str, epoch: int, time_us: int) -> pa.Table:
    """Rows of chunks: inserts as of the cut. Their `_order` is 0: changes of the same epoch come after
    them.
    """
    count = rows.num_rows
    own = {
        CHANGE_TYPE: pa.repeat(pa.scalar(INSERT), count),
        VERSION: pa.repeat(pa.scalar(epoch, pa.int64()), count),
        TIMESTAMP: pa.repeat(pa.scalar(time_us, pa.timestamp("us", tz="UTC")), count),
        SHARD: pa.repeat(pa.scalar(shard), count),
        ORDER: pa.repeat(pa.scalar(0, pa.int64()), count),
    }
    for name, values in own.items():
        rows = rows.append_column(name, values)
    return rows


class GroupFacts:
    """GTID and commit time of the groups of a stretch, by ordinal."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0
        self._table: pa.Table | None = None
        self._of: dict[int, tuple[str, int]] = {}

    def __len__(self) -> int:
        return self._rows

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch of groups (wire.groups.SCHEMA)."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._table, self._of = None, {}

    def table(self) -> pa.Table:
        """`ordinal`, `_gtid` as the server writes it (null without one) and `_commit_timestamp`, in order."""
        if self._table is None:
            groups = pa.Table.from_batches(self._batches, SCHEMA)
            seconds = groups.column("timestamp").cast(pa.timestamp("s", tz="UTC"))
            self._table = pa.table(
                {
                    "ordinal": groups.column("ordinal"),
                    GTID: _gtids(groups),
                    TIMESTAMP: seconds.cast(pa.timestamp("us", tz="UTC")),
                }
            )
        return self._table

    def of(self, ordinal: int) -> tuple[str, int]:
        """GTID, empty without one, and seconds since 1970 of a group."""
        if not self._of:
            self._of = dict(self._few() if self._rows <= _FEW else self._many())
        return self._of[ordinal]

    def _few(self) -> Iterator[tuple[int, tuple[str, int]]]:
        """Without Arrow, which takes longer for a group than for a thousand."""
        for batch in self._batches:
            for group in batch.to_pylist():
                yield group["ordinal"], (_gtid(group), group["timestamp"])

    def _many(self) -> Iterator[tuple[int, tuple[str, int]]]:
        facts = self.table()
        times = facts.column(TIMESTAMP).cast(pa.int64()).to_pylist()
        ordinals, gtids = facts.column("ordinal").to_pylist(), facts.column(GTID).to_pylist()
        for number, gtid, time in zip(ordinals, gtids, times, strict=True):
            yield number, (gtid or "", time // 1_000_000)


def _gtid(group: Mapping[str, Any]) -> str:
    """As `_gtids` has it, empty without one."""
    if group["sequence"] == 0:
        return ""
    if group["uuid"] is None:
        return f"{group['domain']}-{group['server_id']}-{group['sequence']}"
    return ":".join(filter(None, (uuid_text(group["uuid"].hex()), group["tag"], str(group["sequence"]))))


def _gtids(groups: pa.Table) -> pa.ChunkedArray:
    """`domain-server-sequence` of MariaDB; `uuid:number` or `uuid:tag:number` of MySQL."""
    number = groups.column("sequence").cast(pa.string())
    own = [groups.column(name).cast(pa.string()) for name in ("domain", "server_id")]
    mariadb = pc.binary_join_element_wise(*own, number, "-")
    tag = pc.if_else(pc.equal(groups.column("tag"), ""), _NO_TEXT, groups.column("tag"))
    mysql = pc.binary_join_element_wise(_uuids(groups), tag, number, ":", null_handling="skip")
    named = pc.if_else(pc.is_valid(groups.column("uuid")), mysql, mariadb)
    return pc.if_else(pc.equal(groups.column("sequence"), 0), _NO_TEXT, named)


def _uuids(groups: pa.Table) -> pa.Array:
    """As text; a stretch has few different ones."""
    uuids = groups.column("uuid").combine_chunks().dictionary_encode()
    texts = pa.array([uuid_text(octets.hex()) for octets in uuids.dictionary.to_pylist()], pa.string())
    return texts.take(uuids.indices)


def numbered(images: pa.Table) -> pa.Table:
    """Images numbered by group, and within it as they were: those of XA transactions stand in the log before
    the group in which they count.
    """
    at = images.schema.get_field_index(SEQ)
    within = np.bitwise_and(images.column(SEQ).to_numpy(), (1 << _GROUP_SHIFT) - 1)
    numbers = (images.column(GROUP).to_numpy() << _GROUP_SHIFT) + within
    return images.set_column(at, images.schema.field(at), pa.array(numbers))


def number_of(group: int, sequence: int) -> int:
    """The number of an image, as `numbered` gives it."""
    return (group << _GROUP_SHIFT) + (sequence & (1 << _GROUP_SHIFT) - 1)


def group_of(number: int) -> int:
    """The group of an image that was numbered so."""
    return number >> _GROUP_SHIFT


def changed_rows(images: pa.Table, groups: pa.Table, shard: str, epoch: int) -> pa.Table:
    """Typed images with the other change columns."""
    count = images.num_rows
    ordinals = groups.column("ordinal").to_numpy()
    at = pa.array(np.searchsorted(ordinals, images.column(GROUP).to_numpy()))
    own = {
        CHANGE_TYPE: images.column(CHANGE),
        VERSION: pa.repeat(pa.scalar(epoch, pa.int64()), count),
        TIMESTAMP: groups.column(TIMESTAMP).take(at),
        SHARD: pa.repeat(pa.scalar(shard), count),
        GTID: groups.column(GTID).take(at),
        ORDER: pc.add(images.column(SEQ), 1),
    }
    for name, values in own.items():
        images = images.append_column(name, values)
    return images
