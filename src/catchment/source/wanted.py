"""What a reader wants of a stretch of log, and whom it tells."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from catchment.model.definition import Definition
from catchment.model.epoch import TableShape
from catchment.model.table import Kind, Table, TableId
from catchment.schema.shape import logged_kinds
from catchment.wire.log.facts import Ddl

OnImages = Callable[[Table, pa.RecordBatch], None]
OnDdl = Callable[[Ddl], Mapping[TableId, Definition | None]]
OnGroups = Callable[[pa.RecordBatch], None]


def _ignored(*_: object) -> None: ...


@dataclass(frozen=True)
class Wanted:
    """The rows that are wanted of a log; none by default.

    `keys`: the chosen tables and their key columns; images of others are skipped. `kinds`: their columns that the log
    declares as BINARY and the catalog as something else (types.logged_as_binary). `definitions`: what a log without
    full metadata leaves out, as of the start. `before`: "full" images, or the "key" where that is all that is needed.
    """

    keys: Mapping[TableId, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[TableId, Mapping[str, Kind]] = field(default_factory=dict)
    definitions: Mapping[TableId, Definition] = field(default_factory=dict)
    before: Literal["full", "key"] = "key"

    @classmethod
    def of(
        cls,
        shapes: Iterable[TableShape],
        definitions: Iterable[Definition] = (),
        *,
        before: Literal["full", "key"] = "key",
    ) -> "Wanted":
        """The rows of tables that the lake has."""
        chosen = list(shapes)
        return cls(
            keys={shape.table: shape.key for shape in chosen},
            kinds={shape.table: logged_kinds(shape) for shape in chosen},
            definitions={definition.table: definition for definition in definitions},
            before=before,
        )


@dataclass(frozen=True)
class Handlers:
    """What a reader calls on its way, in the order of the log.

    `on_images`: with images of one table. `on_groups`: with the groups (wire.groups.SCHEMA). `on_ddl`: which
    definitions a statement changes, where the log leaves columns out; as `LogDecoder` has it.
    """

    on_images: OnImages = _ignored
    on_groups: OnGroups = _ignored
    on_ddl: OnDdl | None = None
