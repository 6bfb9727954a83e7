"""What a client of a server asks for."""

from dataclasses import dataclass, field
from enum import Enum

from catchment.serve.stream.flags import Flags
from catchment.serve.stream.tables import ALL
from catchment.serve.stream.tables import Given as GivenRule
from catchment.serve.stream.vgtid import Given as GivenVGtid


class Slow(Enum):
    """What becomes of a client that does not take what the shared reader tells, once its buffer is full.

    `REREAD`: a reader of its own goes on for it, and nothing is lost. `GAP`: it is told what it missed, and goes on
    with what is new. `END`: it ends with an error.
    """

    REREAD = "reread"
    GAP = "gap"
    END = "end"


@dataclass(frozen=True, slots=True)
class Ask:
    """As `catchment.stream` has it; `slow` None: as the server has it."""

    vgtid: GivenVGtid = None
    rules: tuple[GivenRule, ...] = ALL
    flags: Flags = field(default_factory=Flags)
    slow: Slow | None = None
