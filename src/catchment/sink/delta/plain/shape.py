"""The form of a plain table: its schema (`_shard`, `_epoch` and the columns of the source), and what a feed asks."""

import msgspec
import pyarrow as pa

from catchment.model.epoch import TableShape
from catchment.model.table import without_case
from catchment.model.treatment import Mode
from catchment.sink.delta.layout import (
    DELETED,
    EPOCH,
    OF_CHANGES,
    SHARD,
    VERSION_FIELDS,
    arrow_schema,
)
from catchment.sink.delta.log import schemas
from catchment.sink.delta.log.actions import VECTORS, MetaData, Protocol
from catchment.sink.delta.log.properties import UNDISTURBED
from catchment.sink.delta.plain.vectors import ARE_SHOWN

CHANGES = "changeDataFeed"
_CHANGES = "delta.enableChangeDataFeed"
# Files have the columns of their partition, too: a foreign OPTIMIZE would leave them out, `_shard` among them.
MATERIALIZED = "materializePartitionColumns"


class Form(msgspec.Struct, frozen=True):
    """What a feed asks of its plain tables. `vectors`: dead rows are named in deletion vectors; else a file with dead
    rows is written anew. `changes`: every version says what it changed (Delta's change data feed). `shown`: vectors
    lie where Trino reads them, and where a full vacuum of delta-rs deletes them."""

    vectors: bool = True
    changes: bool = False
    shown: bool = False

    def for_table(self, shape: TableShape) -> "Form":
        """What of it a table can have: no change data where a column of the source has a name that readers add."""
        taken = any(without_case(c.physical) in OF_CHANGES for c in shape.kept)
        return msgspec.structs.replace(self, changes=False) if taken else self


def plain_schema(shape: TableShape) -> pa.Schema:
    """Columns under their physical names, without those that all shards dropped: readers pass over what older files
    have of them. `_deleted` where rows stay that the source has no longer, the column of a partition, and what versions
    have."""
    kept = {SHARD, EPOCH, *(column.physical for column in shape.kept)}
    marked = {DELETED} if shape.mode in (Mode.SOFT_DELETE, Mode.APPEND) else set()
    fields = [field for field in arrow_schema(shape) if field.name in kept | marked]
    partition = shape.partition_column
    days = () if partition is None else (pa.field(partition, pa.date32()),)
    return pa.schema([*fields, *days, *(VERSION_FIELDS if shape.mode is Mode.HISTORY else ())])


def schema_string(shape: TableShape) -> str:
    """The schema as Delta's log has it, with comments as every reader of Delta knows them."""
    comments = {c.physical: shape.comments.of(c.column.name) for c in shape.kept}
    fields = (
        field.with_metadata({"comment": comment}) if (comment := comments.get(field.name)) else field
        for field in plain_schema(shape)
    )
    return schemas.schema_text(pa.schema(fields))


def protocol_of(shape: TableShape, form: Form) -> Protocol:
    """What readers and writers of such a table must know."""
    vectors = [VECTORS] if form.vectors else []
    changes = [CHANGES] if form.changes else []
    apart = [] if shape.arrangement.partition is None else [MATERIALIZED]
    return schemas.protocol_of(plain_schema(shape), vectors, [*changes, *apart])


def tells_changes(metadata: MetaData) -> bool:
    """Whether the versions of a table of this metadata are written with change data."""
    return metadata.configuration.get(_CHANGES) == "true"


def properties_of(form: Form) -> dict[str, str]:
    """Properties of Delta that say the same, and those of each plain table: readers look at bounds of all columns (by
    default, of 32)."""
    return {
        "delta.dataSkippingNumIndexedCols": "-1",
        "delta.enableDeletionVectors": _told(form.vectors),
        _CHANGES: _told(form.changes),
        ARE_SHOWN: _told(form.shown),
        **UNDISTURBED,
    }


def _told(asked: bool) -> str:
    return "true" if asked else "false"
