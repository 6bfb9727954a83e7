"""Read a feed file and report all its faults at once. No message repeats a value that may be a password."""

import difflib
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from catchment.config.feed import Feed
from catchment.config.values import SECRETS, Context
from catchment.model.errors import ConfigError

# What pydantic's kinds of error mean in a file.
_SAID = {
    "missing": "is missing",
    "string_type": "expected a text; put numbers, dates and words like yes and off in quotes",
    "tuple_type": "expected a list",
    "path_type": "expected a path, as a text",
    "invalid_key": "expected a text as key; put it in quotes",
}

_Place = tuple[int | str, ...]
_Fault = tuple[_Place, str]


def load(path: str | Path, *, secrets: Collection[str] = SECRETS) -> Feed:
    """The feed that the YAML file at `path` describes; relative paths in it are relative to that file.

    `secrets`: which of `SECRETS` the caller needs; the others are not read, and need not be there.

    Raises ConfigError with every fault, one per line, as `file:line: path.in.the.file: what is wrong`.
    """
    file = Path(path).absolute()
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as fault:
        raise ConfigError(f"cannot read the feed file {file}: {fault.strerror}") from fault
    except UnicodeDecodeError as fault:
        raise ConfigError(f"the feed file {file} is not UTF-8 text (byte {fault.start})") from None
    try:
        return _validated(file, text, secrets)
    except RecursionError:
        raise ConfigError(f"{file}: an alias contains itself, or the nesting is too deep") from None


def _validated(file: Path, text: str, secrets: Collection[str]) -> Feed:
    root, values = _parse(file, text)
    faults = _duplicates(root)
    try:
        feed = Feed.model_validate(values, context=Context(directory=file.parent, secrets=secrets))
    except ValidationError as invalid:
        faults += [_fault(error) for error in invalid.errors(include_url=False, include_input=False)]
    if faults:
        lines = sorted((_line(root, place), f"{_written(place)}: {said}") for place, said in faults)
        raise ConfigError("\n".join(f"{file}:{line}: {said}" for line, said in lines))
    return feed


def _parse(file: Path, text: str) -> tuple[yaml.Node, dict[str, Any]]:
    """The tree with its line numbers, and the plain values."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        raise ConfigError(f"{file}:{mark.line + 1 if mark else 1}: {_yaml_problem(fault)}") from None
    except (yaml.YAMLError, ValueError):
        raise ConfigError(f"{file}: not valid YAML") from None
    if root is None or not isinstance(values, dict):
        raise ConfigError(f"{file}: expected a mapping with the keys {', '.join(_keys(Feed))}")
    return root, values


def _yaml_problem(fault: yaml.MarkedYAMLError) -> str:
    """What PyYAML found, without the quoted piece of the file."""
    problem = (fault.problem or "").partition("'")[0].strip()
    if "alias" in problem or "constructor for the tag" in problem:
        return "a text that begins with * or ! must be put in quotes"
    return f"not valid YAML: {problem}"


def _children(node: yaml.Node | None) -> list[tuple[int | str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [(str(key.value), child) for key, child in node.value]
    return list(enumerate(node.value)) if isinstance(node, yaml.SequenceNode) else []


def _duplicates(node: yaml.Node, place: _Place = ()) -> list[_Fault]:
    """Keys that a mapping has twice; PyYAML keeps the last one without a word."""
    faults: list[_Fault] = []
    children = _children(node)
    keys = [key for key, _ in children]
    for index, (key, child) in enumerate(children):
        if key in keys[:index]:
            faults.append(((*place, key), "given twice"))
        faults += _duplicates(child, (*place, key))
    return faults


def _line(root: yaml.Node, place: _Place) -> int:
    """Line of the deepest node on the way to `place` that the file has."""
    node = root
    for step in place:
        found = [child for key, child in _children(node) if key == step]
        if not found:
            break
        node = found[-1]
    return int(node.start_mark.line) + 1


def _written(place: _Place) -> str:
    """`("source", "shards", 0, "port")` as `source.shards[0].port`."""
    text = ""
    for step in place:
        # `password:secret`, without a space behind the colon, is a key: of a key only its first word is shown.
        word = step if isinstance(step, int) else re.split(r"[^\w.-]", step)[0]
        text += f"[{word}]" if isinstance(step, int) else f".{word}"
        if word in SECRETS:  # what stands inside it by mistake is not to be shown
            break
    return text.removeprefix(".") or "the file"


def _fault(error: ErrorDetails) -> _Fault:
    place = error["loc"]
    if (known := _SAID.get(error["type"])) is not None:
        return place, known
    match error["type"]:
        case "extra_forbidden":
            return place, _unknown_key(place)
        case "model_type":
            return place, f"expected a mapping with the keys {', '.join(_keys(_section(place)))}"
    return place, error["msg"].removeprefix("Value error, ").removeprefix("Input ")


def _unknown_key(place: _Place) -> str:
    known = _keys(_section(place[:-1]))
    near = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.5)
    return f"unknown key; did you mean {near[0]}?" if near else f"unknown key; known are {', '.join(known)}"


def _keys(section: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in section.model_fields.items()]


def _section(place: _Place) -> type[BaseModel]:
    """The model of the mapping at `place`."""
    section: type[BaseModel] = Feed
    for step in place:
        if isinstance(step, str):
            fields = {field.alias or name: field for name, field in section.model_fields.items()}
            section = next((m for m in _models(fields[step].annotation)), section)
    return section


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models inside `tuple[Model, ...]`, `Model | None` or `Model`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
