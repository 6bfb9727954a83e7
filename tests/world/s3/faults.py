"""What may go wrong between a client and an S3 server, and the rules by which it does."""

import random
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase

from tests.world.s3.kinds import Kind


class Fault(Enum):
    """What becomes of one request."""

    SLOW_DOWN = auto()
    """The server never sees it; the client reads 503 SlowDown."""
    ERROR = auto()
    """The server never sees it; the client reads 500."""
    CONFLICT = auto()
    """The server never sees it; the client reads 409 ConditionalRequestConflict, S3's word for "repeat this put"."""
    DROP = auto()
    """The server never sees it; the client's connection ends."""
    LOSE = auto()
    """The server does it; the client's connection ends instead of the answer."""
    LOSE_WITH_ERROR = auto()
    """The server does it; the client reads 500 instead of the answer."""
    TWICE = auto()
    """The server gets it two times, as from a proxy that repeats; the client reads the second answer."""
    LATE = auto()
    """The client's connection ends; the server gets it when the test says so, after whatever came in between."""


@dataclass(frozen=True)
class Rule:
    """A fault, or a delay in seconds, or both, for some of the requests.

    Those of `kinds` whose key is like `keys` (a pattern as the shell's, where `*` goes over slashes) are counted from
    1. The rule is for `times` of them, beginning with number `first`; without `times`, for all from there on. Of these
    `chance` decides with `seed`, for each object and its how-manieth request: the order of objects plays no part.
    """

    fault: Fault | None = None
    kinds: Set[Kind] = frozenset(Kind)
    keys: str = "*"
    delay: float = 0.0
    first: int = 1
    times: int | None = None
    chance: float = 1.0
    seed: int = 0


@dataclass(frozen=True)
class Fate:
    """What the rules make of one request."""

    delay: float
    fault: Fault | None


class Rules:
    """Rules in force. The first with a fault decides on a request; delays add up."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(_Counted(rule) for rule in rules)

    def fate(self, kind: Kind, key: str) -> Fate:
        """What becomes of a request; it is counted."""
        struck = [one.rule for one in self._rules if one.strikes(kind, key)]
        faults = [rule.fault for rule in struck if rule.fault]
        return Fate(sum(rule.delay for rule in struck), faults[0] if faults else None)


class _Counted:
    """A rule, and how many requests it has seen."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._seen = 0
        self._of_each: Counter[tuple[Kind, str]] = Counter()

    def strikes(self, kind: Kind, key: str) -> bool:
        rule = self.rule
        if kind not in rule.kinds or not fnmatchcase(key, rule.keys):
            return False
        self._seen += 1
        self._of_each[kind, key] += 1
        if self._seen < rule.first or (rule.times is not None and self._seen >= rule.first + rule.times):
            return False
        draw = random.Random(f"{rule.seed} {kind} {key} {self._of_each[kind, key]}").random()
        return draw < rule.chance
