"""Images of a turn that are few: told without Arrow, which takes as long for a row as for a thousand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from catchment.model.image import GROUP, INTERNAL, OP, SEQ, SIDE, UNCHECKED, UPDATE
from catchment.rewind.change_types import DELETE, INSERT, POSTIMAGE, PREIMAGE, typed
from catchment.rewind.states import BEFORE
from catchment.serve.changes.rows import number_of, numbered

FEW: Final = 64


@dataclass(frozen=True, slots=True)
class Part:
    """Some images in their order: their change types, groups and numbers, and `shown`, the columns of their table."""

    kinds: Sequence[str]
    groups: Sequence[int]
    numbers: Sequence[int]
    shown: pa.Table


@dataclass(frozen=True, slots=True)
class FewImages:
    """Images of one version of a table in the order of the log, of which none was undone. `part`: all of them."""

    batch: pa.RecordBatch
    part: Part

    @classmethod
    def of(cls, batch: pa.RecordBatch, groups: int) -> "FewImages | None":
        """Those of groups with ordinals below `groups`; None where there is none."""
        of = batch.column(GROUP).to_pylist()
        counted = sum(group < groups for group in of)
        if not counted:
            return None
        batch, of = batch.slice(0, counted), of[:counted]
        sides, ops, sequence = (batch.column(name).to_pylist() for name in (SIDE, OP, SEQ))
        names = [name for name in batch.schema.names if name not in INTERNAL]
        part = Part(
            [_kind(side, op) for side, op in zip(sides, ops, strict=True)],
            of,
            [number_of(group, number) for group, number in zip(of, sequence, strict=True)],
            pa.Table.from_batches([batch.select(names)]),
        )
        return cls(batch, part)

    def rows(self, number: int) -> pa.Table:
        """The same in Arrow, with their change types."""
        return numbered(typed(pa.Table.from_batches([self.batch]), None))


def _kind(side: int, op: int) -> str:
    """As `typed` has it, where all images are followed."""
    if op % UNCHECKED == UPDATE:
        return PREIMAGE if side == BEFORE else POSTIMAGE
    return DELETE if side == BEFORE else INSERT
