"""New copies of tables whose mode keeps the past of rows: what they go on from."""

import msgspec


class Renewal(msgspec.Struct, frozen=True):
    """That a copy of a table goes on from the one before, whose rows stay in the lake. `of`: the last epoch at which
    that one was exact; `at`: the first one at which this one is, 0 until it is complete."""

    of: int
    at: int = 0
