"""What a client of a server asks for."""

from dataclasses import dataclass, field

from catchment.model.slow import Slow
from catchment.serve.stream.flags import Flags
from catchment.serve.stream.tables import Given as GivenRule
from catchment.serve.stream.vgtid import Given as GivenVGtid


@dataclass(frozen=True, slots=True)
class Ask:
    """As `catchment.stream` has it. No `rules`: all tables that the server gives. `slow` None: as the server has it."""

    vgtid: GivenVGtid = None
    rules: tuple[GivenRule, ...] = ()
    flags: Flags = field(default_factory=Flags)
    slow: Slow | None = None
