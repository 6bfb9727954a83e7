"""A share of all chunks, chosen at random and the same for each seed."""

import hashlib

import msgspec

from catchment.model.chunk import Chunk

_BITS = 64


class Sample(msgspec.Struct, frozen=True):
    """So many percent of all chunks. A chunk is taken by where it begins, so that a try that failed does not choose
    once more."""

    percent: float
    seed: int

    def takes(self, chunk: Chunk) -> bool:
        """Whether a chunk is one of them."""
        text = f"{self.seed} {chunk.shard} {chunk.table} {chunk.lo}".encode("utf-8", "surrogatepass")
        drawn = int.from_bytes(hashlib.blake2b(text, digest_size=_BITS // 8).digest())
        return drawn < self.percent / 100 * (1 << _BITS)


EVERYTHING = Sample(100.0, 0)
