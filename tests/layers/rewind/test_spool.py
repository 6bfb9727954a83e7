"""Spooled images, against the same images all at once, where memory is scarce and one key has most of them."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catchment.model.image import GROUP, OP, SEQ, SIDE
from catchment.rewind import spool
from catchment.rewind.spool import Spool
from catchment.rewind.states import Voids, in_commit_order, last_images, without_voids

KEY = ("id",)
BUCKET_BYTES = 16_384
MEMORY_BYTES = 8_192


@pytest.fixture(autouse=True)
def _scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BUCKET_BYTES", BUCKET_BYTES)


def images(ids: list[int], first: int, width: int) -> pa.Table:
    """After images of the rows `ids`, each in a group of its own; `first` is the number of the first one."""
    numbers = range(first, first + len(ids))
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "v": pa.array([f"{n}".ljust(width, "x") for n in numbers], pa.string()),
            SIDE: pa.array([1] * len(ids), pa.uint8()),
            OP: pa.array([2] * len(ids), pa.uint8()),
            SEQ: pa.array(numbers, pa.int64()),
            GROUP: pa.array(numbers, pa.int64()),
        }
    )


def test_a_key_with_more_images_than_memory_is_reduced_to_its_last_one() -> None:
    with Spool(KEY, MEMORY_BYTES) as full:
        for first in range(0, 3_000, 10):
            full.add(images([7] * 9 + [first], first, 100))
        assert full.spilled_bytes > 16 * BUCKET_BYTES
        sizes: list[int] = []

        def last(some: pa.Table) -> pa.Table:
            sizes.append(some.nbytes)
            return last_images(some, KEY)

        found = pa.concat_tables(full.tables(last))
    assert found.num_rows == 301
    assert found.filter(pc.equal(found["id"], 7))["v"][0].as_py().startswith("2998x")
    assert max(sizes) <= BUCKET_BYTES + MEMORY_BYTES + 2_000


def test_two_keys_each_larger_than_a_bucket() -> None:
    with Spool(KEY, MEMORY_BYTES) as full:
        for first in range(0, 40, 2):
            full.add(images([7, 8], first, 20_000))
        found = pa.concat_tables(full.tables(lambda some: last_images(some, KEY)))
    assert sorted(
        (i, v[:3]) for i, v in zip(found["id"].to_pylist(), found["v"].to_pylist(), strict=True)
    ) == [
        (7, "38x"),
        (8, "39x"),
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.integers(0, 300) | st.just(7), max_size=40), max_size=60),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(1, 30)), max_size=4),
    st.dictionaries(st.integers(0, 1_000), st.none() | st.integers(2_400, 2_500), max_size=5),
    st.integers(1, 400),
)
def test_the_same_images_count_as_without_a_spool(
    batches: list[list[int]], undone: list[tuple[int, int]], moves: dict[int, int | None], width: int
) -> None:
    voids: Voids = []
    for lo, length in sorted(undone):
        if not voids or lo >= voids[-1][1]:
            voids.append((lo, lo + length))

    def last(some: pa.Table) -> pa.Table:
        return last_images(in_commit_order(without_voids(some, voids), moves), KEY)

    at = 0
    given_all = [images([], 0, width)]
    with Spool(KEY, MEMORY_BYTES) as full:
        for ids in batches:
            given_all.append(images(ids, at, width))
            full.add(given_all[-1])
            at += len(ids)
        found = pa.concat_tables([images([], 0, width), *full.tables(last)])
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == sorted(
        last(pa.concat_tables(given_all)).to_pylist(), key=lambda row: row["id"]
    )
