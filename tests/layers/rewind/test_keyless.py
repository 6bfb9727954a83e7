"""Images of rows that have no key, as those see them who tell changes."""

import pyarrow as pa
import pytest

from catchment.model.errors import Unsupported
from catchment.model.image import DELETE, INSERT, OP, SIDE, UNCHECKED, UPDATE
from catchment.rewind.keyless import as_inserts
from catchment.rewind.states import AFTER, BEFORE

Image = tuple[int, int, int | None]
KEY = ("k",)


def images(*rows: Image) -> pa.Table:
    """Each with its operation, its side and its key."""
    ops, sides, keys = zip(*rows, strict=True)
    types = (pa.uint8(), pa.uint8(), pa.int32())
    return pa.table(
        {n: pa.array(c, t) for n, c, t in zip((OP, SIDE, "k"), (ops, sides, keys), types, strict=True)}
    )


@pytest.mark.parametrize("more", [0, UNCHECKED])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([(INSERT, AFTER, 1), (UPDATE, BEFORE, 1), (UPDATE, AFTER, 2)], None),
        ([(DELETE, BEFORE, None), (INSERT, AFTER, 1)], [(INSERT, AFTER, 1)]),
        ([(UPDATE, BEFORE, None), (UPDATE, AFTER, 1)], [(INSERT, AFTER, 1)]),
        (
            [(UPDATE, BEFORE, 1), (UPDATE, AFTER, 2), (UPDATE, BEFORE, None), (UPDATE, AFTER, 3)],
            [(UPDATE, BEFORE, 1), (UPDATE, AFTER, 2), (INSERT, AFTER, 3)],
        ),
        (
            [(UPDATE, BEFORE, None), (UPDATE, AFTER, 3), (UPDATE, BEFORE, 3), (UPDATE, AFTER, 4)],
            [(INSERT, AFTER, 3), (UPDATE, BEFORE, 3), (UPDATE, AFTER, 4)],
        ),
        (
            [(DELETE, BEFORE, None), (UPDATE, BEFORE, 3), (UPDATE, AFTER, 4)],
            [(UPDATE, BEFORE, 3), (UPDATE, AFTER, 4)],
        ),
    ],
)
def test_a_row_that_gets_a_key_is_one_that_comes(
    given: list[Image], told: list[Image] | None, more: int
) -> None:
    asked = images(*((op + more, side, key) for op, side, key in given))
    wanted = images(*((op + more, side, key) for op, side, key in told or given))
    assert as_inserts(asked, KEY, "shard a, s.t") == wanted


@pytest.mark.parametrize(
    "given",
    [
        [(INSERT, AFTER, None)],
        [(UPDATE, BEFORE, 1), (UPDATE, AFTER, None)],
        [(UPDATE, BEFORE, None), (UPDATE, AFTER, None)],
    ],
)
def test_a_row_without_a_key_is_refused(given: list[Image]) -> None:
    with pytest.raises(Unsupported, match=r"shard a, s\.t: key column 'k' holds a zero date"):
        as_inserts(images(*given), KEY, "shard a, s.t")
