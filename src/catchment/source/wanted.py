"""What a reader wants of a stretch of log."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from catchment.model.column_rule import MaskKey
from catchment.model.definition import Definition
from catchment.model.epoch import Shapes, TableShape
from catchment.model.of_tables import Lazily
from catchment.model.shard import Definitions
from catchment.model.table import Kind, TableId
from catchment.schema.follow import Followed
from catchment.schema.shape import logged_kinds
from catchment.wire.cells.masks import ColumnMasks
from catchment.wire.log.facts import Ddl

# The one callback of a reader that is pulled: the answer says how the rows behind the statement are decoded. These may
# lie in the bytes that are being decoded. As a piece, the statement would come to the consumer too late.
OnDdl = Callable[[Ddl], Mapping[TableId, Definition | None]]


@dataclass(frozen=True)
class Wanted:
    """The rows that are wanted of a log; none by default.

    `keys`: the chosen tables and their key columns; images of others are skipped. `kinds`: their columns that the log
    declares as BINARY and the catalog as something else (types.logged_as_binary). `definitions`: what a log without
    full metadata leaves out, as of the start. `before`: "full" images, or the "key" where that is all that is needed.
    `on_ddl`: which definitions a statement changes, where the log leaves columns out; as `LogDecoder` has it. `masks`:
    what becomes of columns that are not to be kept as they are.
    """

    keys: Mapping[TableId, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[TableId, Mapping[str, Kind]] = field(default_factory=dict)
    definitions: Mapping[TableId, Definition] = field(default_factory=dict)
    before: Literal["full", "key"] = "key"
    on_ddl: OnDdl | None = None
    masks: Mapping[TableId, ColumnMasks] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        shapes: Iterable[TableShape],
        definitions: Iterable[Definition] = (),
        *,
        before: Literal["full", "key"] = "key",
        mask_key: MaskKey | None = None,
    ) -> "Wanted":
        """The rows of tables that the lake has. Of their columns it looks at those of tables that the log names."""
        chosen = shapes if isinstance(shapes, Shapes) else Shapes(shapes)
        known = chosen.by_table
        told = definitions if isinstance(definitions, Definitions) else Definitions(definitions)
        return cls(
            keys=chosen.keys,
            kinds=Lazily(known, lambda table: logged_kinds(known[table])),
            definitions=told.by_table,
            before=before,
            masks=Lazily(known, lambda table: ColumnMasks(known[table].rules, mask_key)),
        )

    def along(self, followed: Followed) -> "Wanted":
        """The same of a stretch whose DDL is followed: what it says of columns holds for the rows behind it."""
        return replace(self, on_ddl=followed.on_ddl, kinds=followed.kinds(self.kinds))
