"""The lots of seeds that a test turns: one that is always the same, and those that the commit draws."""

from typing import Any

import pytest

from tests.suite.drawn import drawn

# So many lots are drawn in `make test`, and so many more in the slices, which also have the first one.
_DRAWN, _DRAWN_WIDE = 1, 8
_SEEDS_MAX = 1_000_000
# Of the lot that is always the same a test says how many tables were renewed; one that is drawn may renew few.
FIRST = 1


def lots(purpose: str, size: int) -> list[Any]:
    """The first seed of each lot of `size` seeds, as parameters of a test."""
    firsts = [
        1 + size * drawn(f"{purpose} {number}", _SEEDS_MAX // size) for number in range(_DRAWN + _DRAWN_WIDE)
    ]
    return [
        pytest.param(FIRST, id="first", marks=pytest.mark.wide),
        *(pytest.param(first, id=f"drawn {n}") for n, first in enumerate(firsts[:_DRAWN], 1)),
        *(
            pytest.param(first, id=f"more {n}", marks=pytest.mark.wide)
            for n, first in enumerate(firsts[_DRAWN:], 1)
        ),
    ]
