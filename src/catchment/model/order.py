"""Orders: what an operator asks of a feed, kept in its state store until a run has answered."""

from enum import Enum

import msgspec

from catchment.model.chunk import Chunk
from catchment.model.position import LogOffset
from catchment.model.table import TableId


class Action(Enum):
    """What is asked."""

    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    RESTART = "restart"
    MEND = "mend"  # rows of the lake that are not those of the source
    STOP = "stop"  # the run
    SET = "set"  # a setting of the copy
    APPLY = "apply"  # another feed file
    SKIP = "skip"  # what stands at a place of a shard's log
    ADOPT = "adopt"  # the server that answers for a shard by a feed file


COPYING = (Action.START, Action.PAUSE, Action.RESUME, Action.RESTART)
# By these a run uses another feed file.
BRING_A_FILE = (Action.APPLY, Action.ADOPT)


class Order(msgspec.Struct, frozen=True):
    """What `user` asked at `asked_us` (microseconds since 1970). Of a copy, it names the table, and the shard if it is
    of that one alone. `chunks`: what is compared and mended, all of that table and shard. Of a run, it names the fence
    of that run: clocks of two hosts are not compared. Of a setting, it names that and its `value`, written as in the
    feed file. `at`: where in the log of the shard stands what is set aside. Of a feed file, `value` is what it says
    (config/another.py), and `leave` names the tables that leave. `copy`: where the log of an adopted server does not go
    on, the shard's tables are copied again."""

    action: Action
    user: str
    asked_us: int
    table: TableId | None = None
    shard: str = ""
    fence: int = 0
    setting: str = ""
    value: str = ""
    chunks: tuple[Chunk, ...] = ()
    at: LogOffset | None = None
    leave: tuple[TableId, ...] = ()
    copy: bool = False

    @property
    def done(self) -> "Order":
        """What stays of it when it is answered: neither keys of rows nor a feed file."""
        value = "" if self.action in BRING_A_FILE else self.value
        return msgspec.structs.replace(self, chunks=(), value=value)

    def __str__(self) -> str:
        if self.at is not None:
            return f"{self.action.value} {self.at} of {self.shard}"
        if self.action is Action.SET:
            return f"set {self.setting}={self.value}"
        if self.action is Action.APPLY:
            return "apply the feed file"
        if self.action is Action.ADOPT:
            return f"adopt the server of shard {self.shard}"
        what = "the run" if self.table is None else str(self.table)
        return f"{self.action.value} {what}{f' on {self.shard}' if self.shard else ''}"


class Mended(msgspec.Struct, frozen=True):
    """How many keys were written again: `missing` and `extra` at the lake, `changed` in value."""

    missing: int = 0
    extra: int = 0
    changed: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.missing + self.extra + self.changed

    def __add__(self, other: "Mended") -> "Mended":
        return Mended(self.missing + other.missing, self.extra + other.extra, self.changed + other.changed)

    def __str__(self) -> str:
        return f"{self.missing} missing at the lake, {self.extra} only at the lake, {self.changed} different"


class Answer(msgspec.Struct, frozen=True):
    """What became of an order: it is `done`, or refused, and why. `mended`: what an order to mend came to."""

    done: bool
    said: str
    answered_us: int
    mended: Mended = Mended()


class Kept(msgspec.Struct, frozen=True):
    """An order under its number, with its answer once it has one."""

    number: int
    order: Order
    answer: Answer | None = None
