"""Read a feed file and report all its faults at once. No message repeats a value that may be a password."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from catchment.config.faults import Location, keys, said
from catchment.config.feed import Feed, SourceConfig
from catchment.config.syntax import parse
from catchment.config.values import SECRETS, Context
from catchment.model.errors import ConfigError

_Fault = tuple[Location, str]


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


def source_section(values: Mapping[str, Any]) -> SourceConfig:
    """A mapping as the section `source` of a feed file; relative paths in it are relative to the working directory.

    Raises ConfigError with every fault.
    """
    context = Context(directory=Path.cwd(), secrets=("password",))
    try:
        return SourceConfig.model_validate(dict(values), context=context)
    except ValidationError as invalid:
        faults = invalid.errors(include_url=False, include_input=False)
        for fault in faults:
            fault["loc"] = ("source", *fault["loc"])
        raise ConfigError("; ".join(f"{_written(fault['loc'])}: {said(fault)}" for fault in faults)) from None


def _validated(file: Path, text: str, secrets: Collection[str]) -> Feed:
    root, values = parse(file, text)
    if root is None or not isinstance(values, dict):
        *most, last = keys(Feed, required=True)
        what = "the file is empty" if values is None else "expected a mapping"
        raise ConfigError(f"{file}: {what}: a feed needs the keys {', '.join(most)} and {last}")
    faults = _duplicates(root)
    try:
        feed = Feed.model_validate(values, context=Context(directory=file.parent, secrets=secrets))
    except ValidationError as invalid:
        found = invalid.errors(include_url=False, include_input=False)
        faults += [(error["loc"], said(error)) for error in found]
    if faults:
        lines = sorted((_line(root, place), f"{_written(place)}: {words}") for place, words in faults)
        raise ConfigError("\n".join(f"{file}:{line}: {words}" for line, words in lines))
    return feed


def _children(node: yaml.Node | None) -> list[tuple[int | str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return [(str(key.value), child) for key, child in node.value]
    return list(enumerate(node.value)) if isinstance(node, yaml.SequenceNode) else []


def _duplicates(node: yaml.Node, place: Location = ()) -> list[_Fault]:
    """Keys that a mapping has twice; PyYAML keeps the last one without a word."""
    faults: list[_Fault] = []
    children = _children(node)
    keys = [key for key, _ in children]
    for index, (key, child) in enumerate(children):
        if key in keys[:index]:
            faults.append(((*place, key), "given twice"))
        faults += _duplicates(child, (*place, key))
    return faults


def _line(root: yaml.Node, place: Location) -> int:
    """Line of the deepest node on the way to `place` that the file has."""
    node = root
    for step in place:
        found = [child for key, child in _children(node) if key == step]
        if not found:
            break
        node = found[-1]
    return int(node.start_mark.line) + 1


def _written(place: Location) -> str:
    """`("source", "shards", 0, "port")` as `source.shards[0].port`."""
    text = ""
    for step in place:
        # `password:secret`, without a space behind the colon, is a key: of a key only its first word is shown.
        word = step if isinstance(step, int) else re.split(r"[^\w.-]", step)[0]
        text += f"[{word}]" if isinstance(step, int) else f".{word}"
        if word in SECRETS:  # what stands inside it by mistake is not to be shown
            break
    return text.removeprefix(".") or "the file"
