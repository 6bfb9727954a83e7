"""Which shards copy no rows now, for the source's sake, compare none, or mend none. The log is read all the same.

A thread for each shard with rows to copy makes its checks, once a second, as long as the planner asks. So a check that
hangs delays no epoch. A check that cannot be made, or whose answer is old, lets no rows pass.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from catchment import world
from catchment.config import ThrottleConfig
from catchment.feed.checks import Probe
from catchment.feed.rates import Rates
from catchment.model.errors import CatchmentError
from catchment.model.throttle import Breach
from catchment.source.load import LoadSessions
from catchment.watch.throttles import Throttles

CHECK_SECONDS = 1.0
# An answer counts for so long.
FRESH_SECONDS = 5.0
# So long the first epoch waits for the first answers of all shards together.
_FIRST_SECONDS = 0.5
# Nobody asked for so long: all rows are copied, or the copy stands still for another reason.
_UNWANTED_SECONDS = 10.0

ProbesOf = Callable[[str, ThrottleConfig], Sequence[Probe]]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What all checks of a shard said at the moment `at`, in seconds of the steady clock."""

    at: float
    breach: Breach | None


class Throttle:
    """Asked by whoever plans reads of rows, in one thread. `rates`: how much the others may copy."""

    def __init__(
        self,
        probes_of: ProbesOf = lambda shard, throttle: (),
        throttle: ThrottleConfig | None = None,
        told: Throttles | None = None,
        rates: Rates | None = None,
    ) -> None:
        self._probes_of = probes_of
        self._throttle = throttle or ThrottleConfig()
        self._told = told or Throttles()
        self._askers: dict[str, _Asker] = {}
        self._beside: list[Throttle] = []
        self.rates = rates or Rates(self._throttle)

    def beside(self, told: Throttles) -> "Throttle":
        """Another one, for rows that are read for another reason. It makes the same checks, and all of them together
        keep to the rates. It changes with this one."""
        other = Throttle(self._probes_of, self._throttle, told, self.rates)
        self._beside.append(other)
        return other

    def shut(self, shards: Collection[str]) -> frozenset[str]:
        """Those of the shards with rows to copy of which none is copied now."""
        breaches = self._unchecked(shards)
        waiting = {shard for shard in shards if shard not in breaches and self.rates.waits(shard)}
        for shard in waiting:
            ahead = self.rates.breach(shard)
            if ahead is not None:
                breaches[shard] = ahead
        self._told.keep(breaches)
        return frozenset({*breaches, *waiting})

    def change(self, throttle: ThrottleConfig) -> None:
        """Other limits from now on; they are checked at once."""
        self._throttle = throttle
        self.rates.change(throttle)
        for shard, asker in [*self._askers.items()]:
            asker.ask_by(tuple(self._probes_of(shard, throttle)))
        for other in self._beside:
            other.change(throttle)

    def close(self) -> None:
        """Ask no more. A check that hangs ends by itself."""
        for asker in [*self._askers.values()]:
            asker.stop()
        for other in self._beside:
            other.close()

    def _unchecked(self, shards: Collection[str]) -> dict[str, Breach]:
        """What keeps shards from copying, by their checks."""
        askers = {shard: self._asker(shard) for shard in shards}
        begun = [asker for asker in askers.values() if asker.want()]
        patient_until = world.steady_seconds() + _FIRST_SECONDS
        for asker in begun:
            asker.answered.wait(max(0.0, patient_until - world.steady_seconds()))
        found = {shard: asker.breach() for shard, asker in askers.items()}
        return {shard: breach for shard, breach in found.items() if breach is not None}

    def _asker(self, shard: str) -> "_Asker":
        if shard not in self._askers:
            self._askers[shard] = _Asker(shard, tuple(self._probes_of(shard, self._throttle)))
        return self._askers[shard]


class _Asker:
    """Makes the checks of one shard in a thread of its own, as long as somebody wants to know."""

    def __init__(self, shard: str, probes: tuple[Probe, ...]) -> None:
        self._shard = shard
        self._probes = probes
        self._lock = world.lock()
        self._wake = world.event()
        self.answered = world.event()
        self._lives = False
        self._wanted_at = 0.0
        self._asking = probes[0] if probes else None
        self._newest: _Answer | None = None

    def want(self) -> bool:
        """Have the checks made from now on; True where that begins now."""
        with self._lock:
            self._wanted_at = world.steady_seconds()
            if self._lives or not self._probes:
                return False
            self._lives = True
            self._newest = None
            self.answered.clear()
        world.thread(f"throttle {self._shard}", self._run).start()
        return True

    def ask_by(self, probes: tuple[Probe, ...]) -> None:
        """Make other checks."""
        with self._lock:
            self._probes = probes
        self._wake.set()

    def stop(self) -> None:
        """Make none any more."""
        with self._lock:
            self._wanted_at = -math.inf
        self._wake.set()

    def breach(self) -> Breach | None:
        """What keeps rows from passing as of now."""
        with self._lock:
            answer, asking, probes = self._newest, self._asking, self._probes
        if not probes:
            return None
        now = world.steady_seconds()
        if answer is not None and now - answer.at <= FRESH_SECONDS:
            return answer.breach
        check = (asking or probes[0]).check
        since = "yet" if answer is None else f"for {now - answer.at:.0f} s"
        return Breach(check, f"has given no answer {since}")

    def _run(self) -> None:
        sessions = LoadSessions()
        while self._is_wanted():
            breach = self._first_breach(sessions)
            with self._lock:
                self._newest = _Answer(world.steady_seconds(), breach)
            self.answered.set()
            self._wake.wait(CHECK_SECONDS)
            self._wake.clear()
        sessions.give_up()

    def _is_wanted(self) -> bool:
        with self._lock:
            self._lives = world.steady_seconds() - self._wanted_at < _UNWANTED_SECONDS and bool(self._probes)
            return self._lives

    def _first_breach(self, sessions: LoadSessions) -> Breach | None:
        for probe in self._probes:
            self._asking = probe
            try:
                breach = probe.ask(sessions)
            # An error of any kind: what is not known does not pass, and the next second may know it.
            except Exception as error:
                sessions.give_up()
                breach = Breach(probe.check, f"cannot be asked: {_words(error)}")
            if breach is not None:
                return breach
        return None


def _words(error: Exception) -> str:
    """What an error says; of one of another library, which may hold a secret, its kind."""
    if isinstance(error, CatchmentError):
        return str(error)
    said = error.strerror if isinstance(error, OSError) else None
    return said or type(error).__name__
