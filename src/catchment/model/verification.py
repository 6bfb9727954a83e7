"""What the comparisons tell of themselves that a run makes in the background."""

import msgspec


class Comparison(msgspec.Struct, frozen=True):
    """A comparison that is whole. Times are microseconds since 1970. `epochs`: the first and the last one compared.
    `parts`: how many chunks were compared, of how many. `tables`: those in which so many keys differed. `mended`: how
    many keys were written again; `left`: what is not mended, and why. `unproven`: how many keys were compared by the
    log alone (feed/verdict.py)."""

    began_us: int
    ended_us: int
    epochs: tuple[int, int]
    rows: int
    parts: tuple[int, int]
    tables: dict[str, int]
    mended: int = 0
    left: tuple[str, ...] = ()
    unproven: int = 0

    @property
    def differences(self) -> int:
        """Keys that differed."""
        return sum(self.tables.values())


class UnderWay(msgspec.Struct, frozen=True):
    """A comparison that has begun: rows compared so far, of about so many, and keys that differ by table. `waits`: what
    keeps it from going on."""

    began_us: int
    rows: int = 0
    expected: int = 0
    tables: dict[str, int] = {}
    waits: str = ""

    @property
    def differences(self) -> int:
        """Keys that differ so far."""
        return sum(self.tables.values())


class Verification(msgspec.Struct, frozen=True):
    """The last comparison that is whole, the one that has begun behind it, and when the next begins."""

    last: Comparison | None = None
    now: UnderWay | None = None
    next_us: int = 0
