"""What a subscriber itself asked for when it began: its later streams must ask for the same.

What it left to the feed file (the tables) or may change from one stream to the next (heartbeats) is no part of it.
"""

from typing import Any

import msgspec

from catchment.model.errors import ConfigError
from catchment.serve.hub.ask import Ask
from catchment.serve.stream.tables import Chosen


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """`patterns` and `rules` as it gave them: none of both where it takes what the feed file has."""

    patterns: tuple[str, ...] = ()
    rules: tuple[dict[str, Any], ...] = ()
    minimize_skew: bool = False

    @classmethod
    def of(cls, ask: Ask) -> "Said":
        """Of a request."""
        rules: tuple[dict[str, Any], ...] = ()
        patterns: tuple[str, ...] = ()
        if ask.rules:
            chosen = Chosen.of(ask.rules)
            patterns, rules = chosen.patterns, tuple(msgspec.to_builtins(rule) for rule in chosen.rules)
        return cls(patterns, rules, ask.flags.minimize_skew)

    @classmethod
    def read(cls, text: str) -> "Said":
        """Of a text that `written` made, in this version or in one before it."""
        if not text:
            return cls()
        value = msgspec.json.decode(text)
        if isinstance(value, list):
            # Before, it was all that counted for a stream: without rules of the client, the tables of the feed file.
            chosen, flags = value
            return cls((), tuple(chosen["rules"]), flags["minimize_skew"])
        return msgspec.convert(value, cls)

    @property
    def written(self) -> str:
        """For the state store; empty where it asked for nothing of its own."""
        return "" if self == Said() else msgspec.json.encode(self).decode()


def must_be_the_same(name: str, kept: str, said: Said) -> None:
    """Raise ConfigError where a subscriber of that name began with something else."""
    before = Said.read(kept)
    if before != said:
        raise ConfigError(
            f"subscriber {name}: it began with {_shown(before)}, and this stream asks for {_shown(said)}; give the "
            "former, another name, or remove it first"
        )


def _shown(said: Said) -> str:
    rules = [*said.patterns, *(f"{rule['match']} {rule['filter']}".strip() for rule in said.rules)]
    skew = " and minimize_skew" if said.minimize_skew else ""
    return f"the rules {', '.join(rules)}{skew}" if rules else f"no rules{skew}"
