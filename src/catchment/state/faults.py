"""Named places where a crash is worth testing. A run is given a function that is called at each of them."""

import os
import signal
from collections.abc import Callable
from enum import Enum


class Fault(Enum):
    """The places, in the order in which an epoch meets them."""

    AFTER_STAGE = "after-stage"
    AFTER_PLAN = "after-plan"
    DURING_READ = "during-read"
    AFTER_MANIFEST = "after-manifest"
    BETWEEN_APPLIES = "between-applies"
    AFTER_APPLY = "after-apply"
    AFTER_EPOCH_ROW = "after-epoch-row"
    DURING_SETTLE = "during-settle"
    DURING_UPGRADE = "during-upgrade"
    DURING_ERASE = "during-erase"


Injector = Callable[[Fault], None]


def no_fault(place: Fault) -> None:
    """The injector of every normal run."""


VARIABLE = "CATCHMENT_FAULT"


def from_environment() -> Injector:
    """The injector that the environment asks for: `CATCHMENT_FAULT=after-plan:3`; none in normal runs."""
    text = os.environ.get(VARIABLE)
    return strike_at(text) if text else no_fault


def strike_at(text: str) -> Injector:
    """An injector that ends this process with SIGKILL at the n-th pass of a place: `after-plan:3`. With
    `after-plan:3:freeze` it stops the process there (SIGSTOP) until somebody wakes it."""
    name, _, rest = text.partition(":")
    count, _, action = rest.partition(":")
    place, left = Fault(name), [int(count or 1)]
    blow = signal.SIGSTOP if action == "freeze" else signal.SIGKILL

    def inject(at: Fault) -> None:
        if at is place:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), blow)

    return inject
