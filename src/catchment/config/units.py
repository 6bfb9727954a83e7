"""Types of the feed file's quantities: read with their unit, and written back with it in the reference."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator

from catchment.model.units import (
    parse_duration,
    parse_size,
    parse_window,
    write_duration,
    write_size,
    write_window,
)


@dataclass(frozen=True)
class Unit:
    """How a quantity is described in the reference, and how its default is written there."""

    meaning: str
    written: Callable[[float], str]


Seconds = Annotated[float, BeforeValidator(parse_duration), Unit("duration", write_duration)]
Window = Annotated[float, BeforeValidator(parse_window), Unit("duration or `forever`", write_window)]
Bytes = Annotated[int, BeforeValidator(parse_size), Unit("size", write_size)]
