"""What a reader of the source sees beside a table's columns: change columns named as in a change data feed."""

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

    def add(self, batch: pa.RecordBatch) -> None:
        """Take a batch of groups (wire.groups.SCHEMA)."""
        self._batches.append(batch)

    def table(self) -> pa.Table:
        """`ordinal`, `_gtid` as the server writes it (null without one) and `_commit_timestamp`, in order."""
        groups = pa.Table.from_batches(self._batches, SCHEMA)
        seconds = groups.column("timestamp").cast(pa.timestamp("s", tz="UTC"))
        return pa.table(
            {
                "ordinal": groups.column("ordinal"),
                GTID: _gtids(groups),
                TIMESTAMP: seconds.cast(pa.timestamp("us", tz="UTC")),
            }
        )


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
