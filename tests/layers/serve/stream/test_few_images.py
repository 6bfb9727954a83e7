"""Images of a small turn are told as those of a large one are."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from catchment.model.image import CHANGE, GROUP, OP, SEQ, SIDE
from catchment.rewind.change_types import typed
from catchment.serve.changes.rows import numbered
from catchment.serve.stream.few_images import FewImages

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        (SIDE, pa.uint8()),
        (OP, pa.uint8()),
        (SEQ, pa.int64()),
        (GROUP, pa.int64()),
    ]
)


def images(rng: random.Random) -> pa.RecordBatch:
    """Some changes, of which an update has two sides."""
    rows: list[dict[str, object]] = []
    for group in range(rng.randrange(1, 6)):
        for _ in range(rng.randrange(4)):
            op = rng.randrange(3) + rng.choice((0, 4))
            sides = {0: (1,), 1: (0,), 2: (0, 1)}[op % 4]
            for side in sides:
                key = rng.randrange(9)
                rows.append({"id": key, "v": str(key), SIDE: side, OP: op, SEQ: len(rows), GROUP: group})
    return pa.RecordBatch.from_pylist(rows, COLUMNS)


@pytest.mark.parametrize("seed", range(40))
def test_they_are_told_as_many_are(seed: int) -> None:
    rng = random.Random(seed)
    batch, groups = images(rng), rng.randrange(6)
    counted = pa.Table.from_batches([batch]).filter(pc.less(batch.column(GROUP), groups))
    few = FewImages.of(batch, groups)
    if few is None:
        assert not counted.num_rows
        return
    many = numbered(typed(counted, None))
    assert few.rows(0).equals(many)
    assert (list(few.part.kinds), list(few.part.numbers)) == (
        many.column(CHANGE).to_pylist(),
        many.column(SEQ).to_pylist(),
    )
    assert list(few.part.groups) == many.column(GROUP).to_pylist()
    assert few.part.shown.equals(many.select(["id", "v"]))
