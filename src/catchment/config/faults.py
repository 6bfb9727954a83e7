"""What pydantic finds wrong with a file, in words of our own."""

import difflib
from collections.abc import Callable
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from catchment.config.feed import Feed
from catchment.config.units import unit_of

# pydantic's kinds of error, by their beginnings.
_SAID = {
    "missing": "is missing",
    "string_type": "expected a text; put numbers, dates and words like yes and off in quotes",
    "string_too_short": "is empty",
    "tuple_type": "expected a list",
    "path_type": "expected a path, as a text",
    "invalid_key": "expected a text as key; put it in quotes",
    "int_": "expected a whole number",
    "bool_": "expected true or false",
    "dict_type": "expected a mapping",
}
_BOUNDS = {"greater_than_equal": "at least", "less_than_equal": "at most", "greater_than": "more than"}

Location = tuple[int | str, ...]


def said(error: ErrorDetails, file: type[BaseModel] = Feed) -> str:
    """What an error means to the writer of a file of this kind; repeats no value of it."""
    kind, place, context = error["type"], error["loc"], error.get("ctx", {})
    if kind in _BOUNDS:
        ((_, bound),) = context.items()
        return f"{_BOUNDS[kind]} {_written_in_its_unit(place, file)(bound)}"
    if kind == "extra_forbidden":
        return _unknown_key(place, file)
    if kind == "model_type":
        return f"expected a mapping with the keys {', '.join(keys(_section(place, file)))}"
    if kind == "enum":
        return f"expected {str(context['expected']).replace(chr(39), '')}"
    if kind == "value_error":
        return str(context["error"])
    return next((words for begun, words in _SAID.items() if kind.startswith(begun)), "not as expected")


def keys(section: type[BaseModel], *, required: bool = False) -> list[str]:
    """The keys of a mapping; or those that must be there."""
    return [
        field.alias or name
        for name, field in section.model_fields.items()
        if not required or (field.is_required() and not field.json_schema_extra)
    ]


def _written_in_its_unit(place: Location, file: type[BaseModel]) -> Callable[[float], str]:
    """How the value at a place is written: with its unit, where it has one."""
    field = fields_of(_section(place[:-1], file)).get(str(place[-1]))
    unit = None if field is None else unit_of(field)
    return str if unit is None else unit.written


# Keys of earlier versions, with what took their place.
_RENAMED = {("sink", "fold"): "sink.settle, a duration, took its place (docs/upgrade.md)"}


def _unknown_key(place: Location, file: type[BaseModel]) -> str:
    if place in _RENAMED:
        return f"unknown key; {_RENAMED[place]}"
    known = keys(_section(place[:-1], file))
    near = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.5)
    return f"unknown key; did you mean {near[0]}?" if near else f"unknown key; known are {', '.join(known)}"


def fields_of(section: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in section.model_fields.items()}


def _section(place: Location, file: type[BaseModel]) -> type[BaseModel]:
    """The model of the mapping at `place`."""
    section = file
    for step in place:
        if isinstance(step, str):
            section = next((m for m in models_in(fields_of(section)[step].annotation)), section)
    return section


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models inside `tuple[Model, ...]`, `Model | None` or `Model`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in models_in(part)]
