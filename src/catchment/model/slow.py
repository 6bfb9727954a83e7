"""What becomes of a client of a server that does not take what it is told."""

from enum import Enum


class Slow(Enum):
    """Once the buffer of its reader is full.

    `REREAD`: a reader of its own goes on for it, and nothing is lost. `GAP`: it is told what it missed, and goes on
    with what is new. `END`: it ends with an error.
    """

    REREAD = "reread"
    GAP = "gap"
    END = "end"
