"""Read a file and report all its faults at once. No message repeats a value that may be a password."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import yaml
from pydantic import ValidationError

from catchment.config.faults import Location, keys, said
from catchment.config.feed import Feed, SourceConfig
from catchment.config.section import Section
from catchment.config.serving import ServeConfig
from catchment.config.syntax import parse
from catchment.config.values import SECRETS, Context
from catchment.model.errors import ConfigError

_Fault = tuple[Location, str]
_S = TypeVar("_S", bound=Section)


@dataclass(frozen=True, slots=True)
class _Kind(Generic[_S]):
    """What a file is: `called` in messages, `of` whom."""

    model: type[_S]
    called: str
    of: str


_FEED: Final = _Kind(Feed, "feed file", "a feed")
_SERVER: Final = _Kind(ServeConfig, "server's file", "a server")


def load(path: str | Path, *, secrets: Collection[str] = SECRETS) -> Feed:
    """The feed that the YAML file at `path` describes; relative paths in it are relative to that file.

    `secrets`: which of `SECRETS` the caller needs; the others are not read, and need not be there.

    Raises ConfigError with every fault, one per line, as `file:line: path.in.the.file: what is wrong`.
    """
    return _loaded(_FEED, path, secrets)


def load_server(path: str | Path) -> ServeConfig:
    """The server that the YAML file at `path` describes. Raises ConfigError as `load` does."""
    return _loaded(_SERVER, path, ("tokens",))


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


def _loaded(kind: _Kind[_S], path: str | Path, secrets: Collection[str]) -> _S:
    file = Path(path).absolute()
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as fault:
        raise ConfigError(f"cannot read the {kind.called} {file}: {fault.strerror}") from fault
    except UnicodeDecodeError as fault:
        raise ConfigError(f"the {kind.called} {file} is not UTF-8 text (byte {fault.start})") from None
    try:
        return _validated(kind, file, text, secrets)
    except RecursionError:
        raise ConfigError(f"{file}: an alias contains itself, or the nesting is too deep") from None


def _validated(kind: _Kind[_S], file: Path, text: str, secrets: Collection[str]) -> _S:
    root, values = parse(file, text)
    if root is None or not isinstance(values, dict):
        *most, last = keys(kind.model, required=True)
        what = "the file is empty" if values is None else "expected a mapping"
        raise ConfigError(f"{file}: {what}: {kind.of} needs the keys {', '.join(most)} and {last}")
    faults = _duplicates(root)
    try:
        valid = kind.model.model_validate(values, context=Context(directory=file.parent, secrets=secrets))
    except ValidationError as invalid:
        found = invalid.errors(include_url=False, include_input=False)
        faults += [(error["loc"], said(error, kind.model)) for error in found]
    if faults:
        lines = sorted((_line(root, place), f"{_written(place)}: {words}") for place, words in faults)
        raise ConfigError("\n".join(f"{file}:{line}: {words}" for line, words in lines))
    return valid


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
