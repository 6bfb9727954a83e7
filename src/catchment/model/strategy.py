"""How rows that exist already are brought to the cut at which they count (docs/strategies.md)."""

from enum import Enum


class Strategy(Enum):
    """`REWIND`: rows are SELECTed behind the cut. The others SELECT them in front of it: `WATERMARK` between two marks
    that it writes, `SNAPSHOT` in a consistent snapshot."""

    REWIND = "rewind"
    WATERMARK = "watermark"
    SNAPSHOT = "snapshot"
