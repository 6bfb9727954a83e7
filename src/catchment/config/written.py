"""What a feed says, written as in a feed file, without its secrets. Pure."""

from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from catchment.config.section import Section
from catchment.config.units import unit_of
from catchment.model.location import ObjectPath


def written(section: Section) -> dict[str, Any]:
    """The keys of a mapping of the feed file that have a value, with these as YAML's own types. Secrets are left out,
    and what is not set."""
    found: dict[str, Any] = {}
    for name, field in type(section).model_fields.items():
        value, unit = getattr(section, name), unit_of(field)
        if value is None or isinstance(value, SecretStr):
            continue
        plain = _plain(value)
        found[field.alias or name] = unit.written(plain) if unit is not None else plain
    return found


def settings(values: Any, place: str = "") -> dict[str, Any]:
    """Each value of what `written` gave under its path: `copy.chunk_time`. A list is one value; mappings in it are
    not looked into."""
    if not isinstance(values, dict):
        return {place: values}
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= settings(value, f"{place}.{key}" if place else key)
    return found


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return written(value) if isinstance(value, Section) else value.model_dump(mode="json")
        case Enum():
            return value.value
        case Path() | ObjectPath():
            return str(value)
        case tuple() | list():
            return [_plain(one) for one in value]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
    return value
