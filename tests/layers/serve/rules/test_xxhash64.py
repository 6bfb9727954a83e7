"""xxHash64 against vectors that others publish, and against itself row by row."""

import random

import numpy as np
import pytest

from catchment.serve.rules.xxhash64 import xxhash64


def hashes(*texts: bytes) -> list[int]:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return xxhash64(np.frombuffer(b"".join(texts), np.uint8), offsets).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        (b"", "ef46db3751d8e999"),  # these four: ClickHouse, 00803_xxhash.sql
        (b"ABC", "e66ae7354fcfee98"),
        (b"xxhash", "32dd38952c4bc720"),
        (b"foo", f"{3728699739546630719:016x}"),
    ],
)
def test_published(text: bytes, digits: str) -> None:
    assert f"{hashes(text)[0]:016x}" == digits


def test_rows_are_hashed_for_themselves() -> None:
    """Lengths around each of the steps: 1, 4, 8 and 32 bytes."""
    chance = random.Random(3)
    texts = [chance.randbytes(size) for size in [*range(70), 96, 100, 1000, 7, 0, 33]]
    chance.shuffle(texts)
    assert hashes(*texts) == [hashes(text)[0] for text in texts]
    assert len(set(hashes(*texts))) == len(set(texts))


def test_bytes_in_front_and_behind_do_not_count() -> None:
    data = np.frombuffer(b"..foobar..", np.uint8)
    assert xxhash64(data, np.array([2, 5, 8], np.int64)).tolist() == hashes(b"foo", b"bar")
