"""How much may be copied, compared and mended of each shard, by rows and bytes a second. Any thread may use it."""

from collections.abc import Iterator

from catchment import world
from catchment.config import ThrottleConfig
from catchment.model.budget import UNLIMITED, Allowance, Budget
from catchment.model.throttle import Breach, Check

# A shard that waits for less is paced as it is to be, and nobody need know.
_TOLD_FROM_SECONDS = 2.0


class Rates:
    """The budgets of a feed's shards: rows of a plan are taken from them, and what was read puts that right."""

    def __init__(self, throttle: ThrottleConfig) -> None:
        self._throttle = throttle
        self._budgets: dict[tuple[str, Check], Budget] = {}
        self._lock = world.lock()

    def change(self, throttle: ThrottleConfig) -> None:
        """Other rates from now on."""
        with self._lock:
            self._throttle = throttle
            rates = dict(self._rates())
            self._budgets = {
                of: budget.later(world.steady_seconds()).at_rate(rates[of[1]])
                for of, budget in self._budgets.items()
                if of[1] in rates
            }

    def waits(self, shard: str) -> bool:
        """Whether too little has come in for the shard to copy rows now."""
        return not all(budget.is_worth_it for budget in self._now(shard).values())

    def breach(self, shard: str) -> Breach | None:
        """Why a shard waits for longer than usual: more was read than was planned."""
        for check, budget in self._now(shard).items():
            if budget.seconds_ahead > _TOLD_FROM_SECONDS:
                what = "rows" if check is Check.ROWS_PER_SECOND else "bytes"
                said = f"is {budget.rate:g}, and {-budget.level:,.0f} {what} were read ahead of it"
                return Breach(check, said, -budget.level, budget.rate)
        return None

    def allowance(self, shard: str) -> Allowance:
        """What an epoch may copy of a shard now."""
        levels = {check: budget.level for check, budget in self._now(shard).items()}
        return Allowance(
            levels.get(Check.ROWS_PER_SECOND, UNLIMITED.rows),
            levels.get(Check.BYTES_PER_SECOND, UNLIMITED.bytes),
        )

    def take(self, shard: str, rows: float, bytes_: float) -> None:
        """So much is copied of a shard; negative amounts were planned and not needed."""
        with self._lock:
            for check, budget in self._of(shard).items():
                amount = rows if check is Check.ROWS_PER_SECOND else bytes_
                self._budgets[shard, check] = budget.spent(amount)

    def _now(self, shard: str) -> dict[Check, Budget]:
        with self._lock:
            return self._of(shard)

    def _of(self, shard: str) -> dict[Check, Budget]:
        """The budgets of a shard as of now."""
        now = world.steady_seconds()
        found = {}
        for check, rate in self._rates():
            known = self._budgets.get((shard, check)) or Budget.full(rate, now)
            found[check] = self._budgets[shard, check] = known.later(now)
        return found

    def _rates(self) -> Iterator[tuple[Check, float]]:
        if self._throttle.rows_per_second is not None:
            yield Check.ROWS_PER_SECOND, self._throttle.rows_per_second
        if self._throttle.bytes_per_second is not None:
            yield Check.BYTES_PER_SECOND, self._throttle.bytes_per_second
