"""A feed file as YAML: its tree with line numbers, and what is wrong with its syntax, in words of our own.

PyYAML's own messages quote pieces of the file, which may hold a password.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from catchment.model.errors import ConfigError

# What PyYAML says (context and problem together), and what a writer of feed files has to know of it.
_MEANINGS = (
    (r"found character '\\t'", "a tab stands where a word is expected; YAML indents with spaces alone"),
    (r"found character '[@`%]'", "a text that begins with @, ` or % must be put in quotes"),
    (r"while scanning an anchor", "a text that begins with & must be put in quotes"),
    (
        r"alias|constructor for the tag|while (scanning|parsing) a tag",
        "a text that begins with * or ! must be put in quotes",
    ),
    (
        r"unknown escape character|expected escape sequence",
        "a backslash in double quotes begins an escape; put the text in single quotes",
    ),
    (r"while scanning a quoted scalar", "a quote is opened in line {begun} and not closed"),
    (
        r"while parsing a flow (sequence|mapping)",
        "a bracket is opened in line {begun} and not closed, or a comma is missing, or a text that begins with ! is "
        "not in quotes",
    ),
    (r"mapping values are not allowed", "a colon and a space inside a text: put it in quotes"),
    (r"while parsing a block", "not indented as the lines before it"),
    (r"could not find expected ':'", "a line that is no `key: value`"),
    (r"unhashable key", "a list or mapping as a key"),
)


def parse(file: Path, text: str) -> tuple[yaml.Node | None, Any]:
    """The tree with its line numbers and the plain values; None twice for a file without any.

    Raises ConfigError for what is not YAML.
    """
    try:
        return _read(text)
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        raise ConfigError(f"{file}:{mark.line + 1 if mark else 1}: {_meaning(fault)}") from None
    except yaml.reader.ReaderError as fault:
        line = text.count("\n", 0, fault.position) + 1
        raise ConfigError(f"{file}:{line}: a character that YAML does not allow") from None
    except ValueError:
        raise ConfigError(f"{file}: a number or date that there is not; put it in quotes") from None


def _read(text: str) -> tuple[yaml.Node | None, Any]:
    """libyaml is ten times as fast. What it refuses, PyYAML refuses in the words that `_MEANINGS` knows."""
    with suppress(yaml.YAMLError, AttributeError):  # a PyYAML may be without it
        return yaml.compose(text, Loader=yaml.CSafeLoader), yaml.load(text, Loader=yaml.CSafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)


def _meaning(fault: yaml.MarkedYAMLError) -> str:
    said = f"{fault.context or ''}: {fault.problem or ''}"
    begun = fault.context_mark.line + 1 if fault.context_mark else 1
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, said):
            return meaning.format(begun=begun)
    return "not valid YAML"
