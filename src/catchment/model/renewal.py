"""New copies of tables that go on from the one before: its past stays, or the rows of some shards."""

import msgspec


class Renewal(msgspec.Struct, frozen=True):
    """That a copy of a table goes on from the one before, whose rows stay in the lake. `of`: the last epoch at which
    that one was exact; `at`: the first one at which this one is, 0 until it is complete."""

    of: int
    at: int = 0


class Replacement(msgspec.Struct, frozen=True):
    """That a copy of a table has the rows of these `shards` anew. Those of others stay in the plain table, as they were
    at epoch `of`, the last one at which the copy before was exact."""

    shards: tuple[str, ...]
    of: int
