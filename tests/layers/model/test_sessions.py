"""How feeds part the sessions of a server: never more than there are, never less than who reads needs, and nobody is
forgotten."""

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from catchment.model.sessions import Claim, Needs, ceiling_of, may_hold, shares, why_waiting

PLAIN = Needs(beside=1, groups=4)


def claim(
    feed: str, held: int = 0, *, least: int = 3, most: int = 10, ceiling: int = 8, since: int = 0
) -> Claim:
    return Claim("db1:3306", feed, 1, held, least, most, ceiling, since)


def test_what_a_run_needs() -> None:
    assert (PLAIN.least, PLAIN.most) == (3, 10)
    assert [PLAIN.groups_in(held) for held in range(3, 12)] == [1, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [PLAIN.used_of(share) for share in range(0, 12)] == [0, 1, 2, 3, 4, 4, 6, 6, 8, 8, 10, 10]
    assert Needs(beside=4, groups=1).least == 6


def parted(*claims: Claim) -> dict[str, int]:
    return {feed: share for (feed, _), share in shares(claims).items()}


def test_shares() -> None:
    assert parted(claim("a")) == {"a": 8}
    assert parted(claim("a", most=3)) == {"a": 3}
    assert parted(claim("a", 8), claim("b")) == {"a": 4, "b": 4}
    assert parted(claim("a", 8), claim("b", most=3)) == {"a": 5, "b": 3}
    assert parted(claim("a", 3, ceiling=7), claim("b", 3)) == {"a": 4, "b": 3}
    assert parted(claim("a", 3), claim("b", 3), claim("c", least=2)) == {"a": 3, "b": 3, "c": 2}


def test_who_does_not_fit_waits_and_holds_up_nobody() -> None:
    some = (claim("a", 3), claim("b", 3), claim("c", since=1), claim("d", least=1, since=2))
    assert parted(*some) == {"a": 4, "b": 3, "d": 1}
    # The first that came is the first that is served, whatever its name.
    assert parted(claim("a", since=2), claim("z", 5, least=5), claim("m", since=1)) == {"z": 5, "m": 3}


def test_a_run_takes_what_the_others_have_given_back() -> None:
    a, b = claim("a", 8), claim("b")
    assert may_hold(b, [a, b]) == 0
    assert may_hold(a, [a, b]) == 4
    a = replace(a, held=5)
    assert may_hold(b, [a, b]) == 3
    b = replace(b, held=3)
    assert (may_hold(a, [a, b]), may_hold(b, [a, b])) == (4, 3)


def test_a_lower_ceiling_takes_no_least() -> None:
    a, b = claim("a", 8), claim("b", ceiling=4)
    assert ceiling_of([a, b]) == 4
    assert (may_hold(a, [a, b]), may_hold(b, [a, b])) == (4, 0)


def test_why_a_run_waits() -> None:
    a, b = claim("a", 6), claim("b")
    assert why_waiting(b.run, [a, b]) == "waits for sessions: 3 of 8 on db1:3306 (feed a has 6)"
    assert why_waiting(b.run, [replace(a, held=5), b]) == ""
    c = claim("c")
    waiting = "waits for sessions: 3 of 8 on db1:3306 (feed a has 6, feed b waits)"
    assert why_waiting(c.run, [a, b, c]) == waiting
    older = replace(b, fence=0, held=6)
    assert why_waiting(b.run, [b, older]) == "waits for sessions: 3 of 8 on db1:3306 (feed b has 6)"


@given(
    seed=st.integers(0, 9),
    ceiling=st.integers(3, 40),
    wants=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), min_size=1, max_size=6),
)
def test_feeds_that_come_and_go(seed: int, ceiling: int, wants: list[tuple[int, int]]) -> None:
    """Runs look at the claims in any order, begin and end."""
    dice = random.Random(seed)
    all_ = {
        str(number): claim(str(number), least=least, most=least + more, ceiling=ceiling, since=number)
        for number, (least, more) in enumerate(wants)
    }
    there: dict[str, Claim] = {}
    orders = [dice.choice(sorted(all_)) for _ in range(100)] + sorted(all_) * 3
    for step, feed in enumerate(orders):
        if feed not in there:
            there[feed] = all_[feed]
        elif dice.random() < 0.1 and step < 100:
            del there[feed]
            continue
        mine = there[feed]
        there[feed] = replace(mine, held=may_hold(mine, list(there.values())))
        assert sum(one.held for one in there.values()) <= ceiling
        assert there[feed].held == 0 or mine.least <= there[feed].held <= mine.most
        assert not (mine.held and not there[feed].held)
    left = ceiling - sum(one.held for one in there.values())
    assert all(one.least > left for one in there.values() if not one.held)
