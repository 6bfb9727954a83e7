"""What a client of a stream has made of its events: rows by shard, table and key. It applies them strictly."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from catchment.serve.stream.events import (
    Begin,
    Commit,
    CopyCompleted,
    Ddl,
    Event,
    Field,
    Heartbeat,
    LastPk,
    Restart,
    Row,
)
from tests.world.sim.history import History
from tests.world.sim.serve.cut import Cut
from tests.world.sim.serve.wanted import Values

Where = tuple[str, str]  # shard and table


class Wrong(AssertionError):
    """A client received what it must not receive, or did not receive what it must."""


@dataclass
class Transaction:
    """What came between a Begin and its Commit."""

    begin: Begin
    items: list[Row | Ddl | LastPk] = field(default_factory=list)


@dataclass
class Told:
    """What came from one vgtid to the next."""

    transactions: list[Transaction] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)
    completed: list[CopyCompleted] = field(default_factory=list)

    @property
    def restarted(self) -> set[Where]:
        """The tables of which a client had to forget all."""
        return {(one.shard, one.table.name) for one in self.restarts}

    @property
    def nothing(self) -> bool:
        """Whether there was neither a row nor a statement."""
        return not (self.transactions or self.restarts)


@dataclass
class Ledger:
    """`text`: the last vgtid, and `cut` what it says; None before the first. `logs`: of each shard, those that the
    stream may be reading. `others`: what the client has if it began in other logs, which had the same places."""

    text: str = ""
    cut: Cut | None = None
    rows: dict[Where, dict[int, Values]] = field(default_factory=dict)
    logs: dict[str, list[History]] = field(default_factory=dict)
    others: list["Ledger"] = field(default_factory=list)

    def copy(self) -> "Ledger":
        """The same, for a client that keeps it. Rows themselves never change."""
        rows = {where: dict(held) for where, held in self.rows.items()}
        others = [other.copy() for other in self.others]
        return Ledger(self.text, self.cut, rows, dict(self.logs), others)

    def take(self, events: Iterable[Event]) -> Told:
        """Apply the events between two vgtids. Raises Wrong where one cannot follow what is there."""
        told, open_now = Told(), None
        for event in events:
            match event:
                case Begin():
                    _must(open_now is None, "a transaction begins within another one", event)
                    open_now = Transaction(event)
                case Commit():
                    _must(open_now is not None and _ends(open_now.begin, event), "no transaction ends", event)
                    assert open_now is not None
                    told.transactions.append(open_now)
                    open_now = None
                case Row() | Ddl() | LastPk():
                    _must(open_now is not None and open_now.begin.shard == event.shard, "in none", event)
                    assert open_now is not None
                    open_now.items.append(event)
                    self._apply(event)
                case Restart():
                    self.rows.pop((event.shard, event.table.name), None)
                    told.restarts.append(event)
                case CopyCompleted():
                    told.completed.append(event)
                case _:
                    _must(isinstance(event, Field | Heartbeat), "it is not expected here", event)
        _must(open_now is None, "a vgtid within a transaction", open_now)
        return told

    def _apply(self, event: Row | Ddl | LastPk) -> None:
        held = self.rows.setdefault((event.shard, event.table.name), {})
        if isinstance(event, Ddl):
            if event.emptied:
                held.clear()
        elif isinstance(event, Row):
            key = next(side["id"] for side in (event.before, event.after) if side is not None)
            before = values_of(event.before)
            _must(held.get(key) == before, f"not the row that is there, {held.get(key)}", event)
            held.pop(key, None)
            if event.after is not None:
                held[key] = values_of(event.after) or {}


def values_of(side: dict[str, Any] | None) -> Values | None:
    """The values that are not NULL."""
    return None if side is None else {name: value for name, value in side.items() if value is not None}


def _ends(begin: Begin, commit: Commit) -> bool:
    return (begin.shard, begin.gtid, begin.time) == (commit.shard, commit.gtid, commit.time)


def _must(holds: bool, what: str, event: object) -> None:
    if not holds:
        raise Wrong(f"{what}: {event}")
