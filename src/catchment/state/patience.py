"""Waiting for a state store that does not answer: a run does, a command tells its user at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from catchment import world
from catchment.model.errors import StateAway, StateError
from catchment.model.retries import is_waited_for, may_repeat, pause_seconds

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a run waits. `wait_max`: seconds; None: for ever. `stop`: it is to end. `away` and `back` hear of each
    try that failed, and of the first after those that did not."""

    stop: world.Event
    wait_max: float | None
    away: Callable[[StateAway], None]
    back: Callable[[], None]


def until_there(work: Callable[[], _T], patience: Patience | None) -> _T:
    """Do work on a store, again and again while the store is away, and without patience once.

    The connection may have broken after a commit, so work that is done twice must come to the same. No other runner
    can have come in between unseen: each transaction begins with a look at the lease (`Store.guard`). Raises StateAway
    when the run is to stop, and StateError when the store was away for too long.
    """
    since, failures = 0.0, 0
    while True:
        try:
            found = work()
        except StateAway as error:
            if patience is None or patience.stop.is_set():
                raise
            now = world.steady_seconds()
            since, failures = since if failures else now, failures + 1
            if not may_repeat(error, failures) and not is_waited_for(error, now - since, patience.wait_max):
                raise StateError(f"{error} (waited for {now - since:.0f} s)") from error
            patience.away(error)
            patience.stop.wait(pause_seconds(failures))
            continue
        if failures and patience is not None:
            patience.back()
        return found


class Patient(Protocol):
    """A store, or what writes into one."""

    @property
    def patience(self) -> Patience | None:
        """How long it waits while the store is away; None: not at all."""
        ...


_S = TypeVar("_S", bound=Patient)


def patient(work: Callable[Concatenate[_S, _P], _T]) -> Callable[Concatenate[_S, _P], _T]:
    """Have a method, or a function of a store, wait while the store is away; see `until_there`."""

    @wraps(work)
    def waiting(of: _S, /, *args: _P.args, **named: _P.kwargs) -> _T:
        return until_there(lambda: work(of, *args, **named), of.patience)

    return waiting
