"""Values of a feed's journal: how runs ended, and what troubles them."""

from typing import Final

import msgspec

from catchment.model.birth import Birth
from catchment.model.errors import INTERRUPTED, CatchmentError
from catchment.model.progress import Progress
from catchment.model.strategy import Strategy
from catchment.model.table import TableId
from catchment.model.throttle import Throttled
from catchment.model.verification import Verification
from catchment.state.moments import time_text

KEEP_ERRORS = 20
MESSAGE_MAX = 4000


class ErrorNote(msgspec.Struct, frozen=True):
    """Equal errors of a feed, `count` of them between two times (microseconds since 1970). `kind` is the name of
    their class; `shard` is empty where the error does not know it."""

    kind: str
    message: str
    shard: str
    first_us: int
    last_us: int
    count: int = 1

    @classmethod
    def of(cls, error: BaseException, now_us: int) -> "ErrorNote":
        """An error met now. What an error of another library says may hold a secret: it is left out."""
        ours = isinstance(error, CatchmentError)
        message = str(error) if ours else "a fault of this program; the run printed where it happened"
        shard = error.shard if isinstance(error, CatchmentError) else ""
        return cls(type(error).__name__, message[:MESSAGE_MAX], shard, now_us, now_us)

    def equals(self, other: "ErrorNote") -> bool:
        """Whether the same happened again."""
        return (self.kind, self.message, self.shard) == (other.kind, other.message, other.shard)

    def with_later(self, other: "ErrorNote") -> "ErrorNote":
        """Both, of which `other` came later."""
        return msgspec.structs.replace(self, last_us=other.last_us, count=self.count + other.count)


class RunNote(msgspec.Struct, frozen=True):
    """One run: who, from when, and to when with which exit code and error. It has no end while it lives, or when it was
    killed. `version`: of Catchment. `strategy`: by which it copies rows. Times are microseconds since 1970."""

    owner: str
    started_us: int
    ended_us: int | None = None
    exit_code: int | None = None
    error: ErrorNote | None = None
    version: str = ""
    strategy: Strategy = Strategy.REWIND


# What cannot be read of a shard that may answer.
LOG: Final = "its log"


class Trouble(msgspec.Struct, frozen=True):
    """What fails since `since_us` (microseconds since 1970) in so many tries: a shard's clock, what is `away` (the
    state store, the lake), or without either the reading of an epoch. `kind` and `message` are those of the newest
    error; `away` is set for a shard, too, where it does not answer, and is LOG where its log cannot be read."""

    shard: str
    since_us: int
    tries: int
    kind: str
    message: str
    away: str = ""

    def __str__(self) -> str:
        return f"{self.what} since {time_text(self.since_us)} (try {self.tries}): {self.message}"

    @property
    def what(self) -> str:
        """Who is in trouble, without the reason."""
        if self.shard and self.away == LOG:
            return f"the log of shard {self.shard} cannot be read"
        if self.shard:
            return f"shard {self.shard} {'is away' if self.away else 'fails'}"
        return f"{self.away} is away" if self.away else "the epoch is read again"

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from other troubles of the same time."""
        return self.shard, self.away if self.away == LOG or not self.shard else ""


class NotCarried(msgspec.Struct, frozen=True):
    """A shard's table that `tables` takes and the feed does not carry; `epoch` is the first one known to be without
    it. `birth`: where its CREATE stands, if the feed has read it."""

    table: TableId
    shard: str
    epoch: int
    birth: Birth | None = None


class Setting(msgspec.Struct, frozen=True):
    """A setting of the copy that `user` changed at `since_us` (microseconds since 1970), while the feed file of the run
    said `file_value`. Values are written as in the feed file."""

    name: str
    value: str
    file_value: str
    user: str
    since_us: int


class Entries(msgspec.Struct, frozen=True):
    """All entries of a feed. `alive_us`: the newest sign of life of a run; `errors`: the newest last; `troubles`,
    `throttled`: those of the newest run as long as it lived. `progress`: how far that run has come.
    `verification`: what is known of the comparisons that runs make in the background."""

    run: RunNote | None = None
    alive_us: int | None = None
    errors: tuple[ErrorNote, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    uncarried: tuple[NotCarried, ...] = ()
    throttled: tuple[Throttled, ...] = ()
    settings: tuple[Setting, ...] = ()
    progress: Progress | None = None
    verification: Verification = Verification()


def with_errors(known: tuple[ErrorNote, ...], more: tuple[ErrorNote, ...]) -> tuple[ErrorNote, ...]:
    """The newest KEEP_ERRORS of both, the newest last."""
    kept = list(known)
    for error in more:
        same = next((one for one in kept if one.equals(error)), None)
        if same is not None:
            kept.remove(same)
        kept.append(error if same is None else same.with_later(error))
    return tuple(kept[-KEEP_ERRORS:])


def exit_code_of(error: BaseException) -> int:
    """What the command returns that ends by an error."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return error.exit_code if isinstance(error, CatchmentError) else CatchmentError.exit_code
