"""Types of the feed file's quantities: read with their unit, and written back with it in the reference."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from catchment.model.units import (
    parse_duration,
    parse_percent,
    parse_size,
    parse_window,
    write_duration,
    write_percent,
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
Percent = Annotated[float, BeforeValidator(parse_percent), Unit("percentage", write_percent)]
Bytes = Annotated[int, BeforeValidator(parse_size), Unit("size", write_size)]


def unit_of(field: FieldInfo) -> Unit | None:
    """The unit of a quantity, also of one that may be left out; None for what has no unit."""
    of_parts = (mark for part in get_args(field.annotation) for mark in getattr(part, "__metadata__", ()))
    marks: tuple[Any, ...] = (*field.metadata, *of_parts)
    return next((mark for mark in marks if isinstance(mark, Unit)), None)
