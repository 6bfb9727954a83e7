"""A sample of chunks: as large as asked, the same for one seed, and another for another."""

from catchment.model.chunk import Chunk
from catchment.model.sample import EVERYTHING, Sample
from catchment.model.table import TableId

CHUNKS = [
    Chunk(shard, TableId("shop", table), (number,) if number else None, (number + 1,))
    for shard in ("-80", "80-")
    for table in ("orders", "items", "p\udcff")
    for number in range(500)
]


def test_it_is_as_large_as_asked_and_the_same_again() -> None:
    for percent in (1.0, 10.0, 50.0):
        taken = [chunk for chunk in CHUNKS if Sample(percent, 5).takes(chunk)]
        assert 0.6 * percent < 100 * len(taken) / len(CHUNKS) < 1.4 * percent
        assert taken == [chunk for chunk in CHUNKS if Sample(percent, 5).takes(chunk)]
        others = [chunk for chunk in CHUNKS if Sample(percent, 6).takes(chunk)]
        assert others != taken
        for of in ({"shard": "-80"}, {"shard": "80-"}):
            share = [chunk for chunk in taken if chunk.shard == of["shard"]]
            assert 0.3 * len(taken) < len(share) < 0.7 * len(taken)


def test_a_chunk_is_chosen_by_where_it_begins() -> None:
    """A try that failed makes smaller chunks, and must not choose once more."""
    table = TableId("shop", "orders")
    longer, shorter = (Chunk("-80", table, (7,), (end,)) for end in (100, 10))
    for seed in range(50):
        sample = Sample(50.0, seed)
        assert sample.takes(longer) == sample.takes(shorter)


def test_all_is_everything() -> None:
    assert all(EVERYTHING.takes(chunk) for chunk in CHUNKS)
