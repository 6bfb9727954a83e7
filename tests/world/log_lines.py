"""Lines of a command's log, without what differs from run to run."""

import re

_HEAD = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (?:DEBUG|INFO|WARNING|ERROR) +", re.MULTILINE)


def without_times(text: str) -> str:
    """A log in text, without the times and levels of its lines."""
    return _HEAD.sub("", text)


def troubles(text: str) -> list[str]:
    """What a command says but of its progress, line by line, without times and levels."""
    return [without_times(line) for line in text.splitlines() if " INFO " not in line[:32]]
