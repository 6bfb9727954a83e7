"""Sessions of a server: what a run needs of them, and how feeds that share a ceiling part them. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

# What reads a server, and how many of its sessions that has at a time (docs/decisions/2026-11-25-session-ceiling.md).
CLOCK: Final = 1
CHECKS: Final = 1
SEGMENT: Final = 1
# While a floor is proven one session asks, and a dump reads. A first cut has one more, before there is a clock.
GROUP: Final = 2


@dataclass(frozen=True, slots=True)
class Needs:
    """`beside`: sessions that a run has on each server whatever else it does. `groups`: of chunks, read at a time."""

    beside: int
    groups: int

    @property
    def least(self) -> int:
        """With fewer no epoch can be read. The log is read first then, and one group of chunks behind it."""
        return self.beside + GROUP

    @property
    def most(self) -> int:
        """More would not be used."""
        return self.beside + SEGMENT + GROUP * self.groups

    def groups_in(self, held: int) -> int:
        """How many groups are read at a time with so many sessions."""
        return max(1, min(self.groups, (held - self.beside - SEGMENT) // GROUP))

    def used_of(self, share: int) -> int:
        """How many of so many sessions are of use."""
        if share < self.least + SEGMENT:
            return min(share, self.least)
        return self.beside + SEGMENT + GROUP * self.groups_in(share)


@dataclass(frozen=True, slots=True)
class Held:
    """The sessions that a run has, by shard: none while it waits. `waits_since_us`: microseconds since 1970; 0: it
    does not wait."""

    sessions: Mapping[str, int]
    waits_since_us: int = 0


class Claim(msgspec.Struct, frozen=True):
    """What a run, by feed and fence, has of the sessions of a server. `least`: it cannot go on with fewer; `most`: it
    would not use more. Without any `held` it waits. `ceiling`: what its feed file allows all runs together. `since_us`:
    when it came, in microseconds since 1970."""

    server: str
    feed: str
    fence: int
    held: int
    least: int
    most: int
    ceiling: int
    since_us: int

    @property
    def run(self) -> tuple[str, int]:
        """Who claims."""
        return self.feed, self.fence


def ceiling_of(claims: Sequence[Claim]) -> int:
    """What all runs together may hold of one server: the lowest that a feed file says."""
    return min(claim.ceiling for claim in claims)


def shares(claims: Sequence[Claim]) -> dict[tuple[str, int], int]:
    """What each run should have of one server; those that still have to wait are not named.

    Whoever holds some keeps its least. Then those that wait get theirs, in the order in which they came, as far as they
    fit. What is left is dealt to all of them in turn.
    """
    found: dict[tuple[str, int], int] = {}
    left = ceiling_of(claims)
    served = []
    for claim in sorted(claims, key=lambda one: (one.held == 0, one.since_us, one.run)):
        if claim.held or claim.least <= left:
            found[claim.run] = claim.least
            left -= claim.least
            served.append(claim)
    while left > 0 and (wanting := [one for one in served if found[one.run] < one.most]):
        for claim in wanting[:left]:
            found[claim.run] += 1
        left -= len(wanting[:left])
    return found


def may_hold(mine: Claim, claims: Sequence[Claim]) -> int:
    """What a run may hold now of its server. `claims`: all that are made there, `mine` among them.

    Never more than the others leave, nor less than its least where it holds that; 0: it waits.
    """
    free = ceiling_of(claims) - sum(one.held for one in claims if one.run != mine.run)
    share = min(shares(claims).get(mine.run, 0), free)
    if share < mine.least:
        return mine.least if mine.held else 0
    return share


def held_beside(mine: Claim, claims: Sequence[Claim]) -> dict[str, int]:
    """What other runs have of the server of a claim, by feed."""
    found: Counter[str] = Counter()
    for one in claims:
        if one.server == mine.server and one.run != mine.run:
            found[one.feed] += one.held
    return dict(sorted(found.items()))


def others_text(mine: Claim, claims: Sequence[Claim]) -> str:
    """The same in words."""
    beside = held_beside(mine, claims)
    having = (f"feed {feed} {f'has {held}' if held else 'waits'}" for feed, held in beside.items())
    return ", ".join(having) or "no other feed has any"


def why_waiting(run: tuple[str, int], claims: Sequence[Claim]) -> str:
    """What a run waits for on which servers, and who has it; empty where nothing is wanting."""
    found = []
    for mine in sorted((one for one in claims if one.run == run), key=lambda one: one.server):
        allowed = ceiling_of([one for one in claims if one.server == mine.server])
        if allowed - sum(held_beside(mine, claims).values()) < mine.least:
            found.append(f"{mine.least} of {allowed} on {mine.server} ({others_text(mine, claims)})")
    return f"waits for sessions: {', '.join(found)}" if found else ""
