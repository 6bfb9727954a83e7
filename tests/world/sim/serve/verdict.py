"""The judge of what a client received up to a vgtid. It believes the servers' own histories, and reads no log.

At each vgtid the client's rows must be those of all shards at its places, as far as they are copied. What came
since the vgtid before must be the shards' transactions between the two places: each once, in the order of the log.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from catchment.serve.stream.events import Ddl, Event, LastPk, Row
from tests.world.sim.history import Group, History, Place
from tests.world.sim.serve.cut import Copied, Cut, ShardCut, read
from tests.world.sim.serve.ledger import Ledger, Told, Transaction, Wrong, values_of
from tests.world.sim.serve.wanted import Values, View
from tests.world.sim.server import Server

_FILE_START = 4

Item = tuple[object, ...]


@dataclass(frozen=True)
class Due:
    """A transaction that has to be told, without those tables that were restarted."""

    gtid: str
    seconds: int
    items: Sequence[Item]


@dataclass
class Judge:
    """`servers` by the names of their shards."""

    servers: Mapping[str, Server]
    vgtids: int = 0
    copying: int = 0

    def begin(self, ledger: Ledger, text: str, views: Mapping[str, View]) -> None:
        """The client begins at a vgtid, with the rows that a shard's tables have there as far as they are copied. Of a
        shard that was reset within a second several logs may hold that place: the client has the rows of one of them.
        """
        cut = read(text)
        ledger.logs = {}
        logs = [self._logs(ledger, shard, stands) for shard, stands in cut.shards.items()]
        if not all(logs) or any(stands.tables.keys() != views.keys() for stands in cut.shards.values()):
            raise Wrong(f"it begins at {cut.shards}")
        begun = [self._begun(text, dict(zip(cut.shards, one, strict=True)), views) for one in product(*logs)]
        first, *others = reversed(begun)  # most likely those that the servers have now
        ledger.text, ledger.cut, ledger.rows, ledger.logs = text, cut, first.rows, first.logs
        ledger.others = others

    def _begun(self, text: str, logs: Mapping[str, History], views: Mapping[str, View]) -> Ledger:
        """What a client has at a vgtid if these are the shards' logs."""
        cut = read(text)
        rows = {
            (shard, table): _state(logs[shard], table, stands.place, copied, views[table])
            for shard, stands in cut.shards.items()
            for table, copied in stands.tables.items()
        }
        return Ledger(text, cut, rows, {shard: [log] for shard, log in logs.items()})

    def follow(
        self, ledger: Ledger, events: Sequence[Event], text: str, views: Mapping[str, View]
    ) -> tuple[Ledger, Told]:
        """The ledger at the client's next vgtid, and what came up to it. Raises Wrong where the events suit none of the
        logs in which the client may have begun."""
        found: list[tuple[Ledger, Told]] = []
        faults: list[Wrong] = []
        for one in (ledger, *ledger.others):
            try:
                told = one.take(events)
                self.settle(one, told, text, views)
                found.append((one, told))
            except Wrong as fault:
                faults.append(fault)
        if not found:
            raise faults[0]
        after, told = found[0]
        after.others = [other for other, _ in found[1:]]
        return after, told

    def goes_on(self, before: Cut, now: Cut) -> bool:
        """Whether a stream that begins at one cut has all that one of before it has: a shard stands where it stood, or
        at the head of a later file with no group in between."""
        return now.places.keys() == before.places.keys() and all(
            place == was or (place[1] == _FILE_START and not self._between(shard, was, place))
            for (shard, place), was in zip(now.places.items(), before.places.values(), strict=True)
        )

    def _between(self, shard: str, begin: Place, end: Place) -> bool:
        groups = self.servers[shard].history.groups
        return end < begin or any(begin < group.end <= end for group in groups)

    def settle(self, ledger: Ledger, told: Told, text: str, views: Mapping[str, View]) -> None:
        """The client's next vgtid, up to which `told` was applied. Raises Wrong."""
        before, now = ledger.cut, read(text)
        assert before is not None
        self.vgtids += 1
        if now.epoch < before.epoch:
            raise Wrong(f"the vgtid's number goes back from {before.epoch} to {now.epoch}")
        for shard, stands in now.shards.items():
            found = [
                (log, self._complaint(ledger, told, shard, log, stands, views))
                for log in self._logs(ledger, shard, stands)
            ]
            ledger.logs[shard] = [log for log, wrong in found if not wrong]
            if not ledger.logs[shard]:
                raise Wrong(
                    f"{shard} at {stands.place}: {found[0][1] if found else 'its log was reset before'}"
                )
        _must_complete(told, before, now)
        ledger.text, ledger.cut = text, now

    def _logs(self, ledger: Ledger, shard: str, stands: ShardCut) -> list[History]:
        known = ledger.logs.get(shard, self.servers[shard].histories)
        ledger.logs[shard] = [log for log in known if log.may_hold(stands.place, stands.born)]
        return ledger.logs[shard]

    def _complaint(
        self,
        ledger: Ledger,
        told: Told,
        shard: str,
        log: History,
        stands: ShardCut,
        views: Mapping[str, View],
    ) -> str:
        """What is wrong if the shard's log is this one; empty where nothing is."""
        assert ledger.cut is not None
        before = ledger.cut.shards[shard]
        if stands.place < before.place:
            return f"it goes back from {before.place}"
        if any(
            group.start < stands.place < group.end for group in _between(log, before.place, stands.place)[1]
        ):
            return "it stands within a transaction"
        if stands.tables.keys() != views.keys():
            return f"it follows {sorted(stands.tables)}"
        for table, copied in stands.tables.items():
            have = ledger.rows.get((shard, table), {})
            due = _state(log, table, stands.place, copied, views[table])
            if have != due:
                more, less = _apart(have, due), _apart(due, have)
                return f"{table}, {copied}: has {more}, and should have {less}"
            self.copying += not copied.done
        without = {table for of, table in told.restarted if of == shard}
        server_id = self.servers[shard].server_id
        expected = list(due_of(log, server_id, before, stands.place, views, without))
        found = list(_found(told, shard, without))
        if found != expected:
            at = next(
                (n for n, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]), -1
            )
            return f"received {found[at:][:2]}, and not {expected[at:][:2]} ({len(found)}, {len(expected)})"
        return _chunks_wrong(told, shard, stands, without)


def due_of(
    log: History,
    server_id: int,
    since: ShardCut,
    until: Place,
    views: Mapping[str, View],
    without: set[str],
) -> Iterator[Due]:
    """The transactions between two places that a client must be told, as far as tables were copied at the first."""
    first, groups = _between(log, since.place, until)
    held: dict[str, dict[int, Values]] = {
        table: _state(log, table, since.place, since.tables[table], view)
        for table, view in views.items()
        if table not in without and table in since.tables
    }
    for number, group in enumerate(groups, first + 1):
        items: list[Item] = []
        if group.adds is not None and group.adds[0] in held:
            items.append(("ddl", *group.adds))
        if group.empties in held:
            held[group.empties].clear()
            items.append(("ddl", group.empties, ""))
        for table, key, row in group.changes:
            if table not in held or not since.tables[table].has(key):
                continue
            was, now = held[table].pop(key, None), views[table].of(row)
            if now is not None:
                held[table][key] = now
            if was is not None or now is not None:
                items.append((table, was, now))
        if items:
            yield Due(f"0-{server_id}-{number}", group.seconds, items)


def lacks(log: History, stands: ShardCut, until: Place, views: Mapping[str, View]) -> bool:
    """Whether a client that stands there, with all copied, has still to be told something up to a place."""
    _, groups = _between(log, stands.place, until)
    touched = {table for group in groups for table, _, _ in group.changes} | {
        table for group in groups for table in (group.empties, group.adds[0] if group.adds else "")
    }
    if not touched & views.keys():
        return False
    return any(due_of(log, 0, stands, groups[-1].end, views, set()))


def _found(told: Told, shard: str, without: set[str]) -> Iterator[Due]:
    for one in told.transactions:
        if one.begin.shard == shard and not one.begin.copied:
            items = [_item(item) for item in one.items if item.table.name not in without]
            if items:
                yield Due(one.begin.gtid, one.begin.time, items)


def _item(item: Row | Ddl | LastPk) -> Item:
    if isinstance(item, Row):
        return item.table.name, values_of(item.before), values_of(item.after)
    if isinstance(item, Ddl):
        return ("ddl", item.table.name, *(item.added or ("",)))
    return ("last key", item.table.name, item.key)


def _chunks_wrong(told: Told, shard: str, stands: ShardCut, without: set[str]) -> str:
    """Whether the last key of each table is the one up to which the vgtid says that it is copied."""
    last: dict[str, LastPk] = {}
    for one in told.transactions:
        if one.begin.shard == shard and one.begin.copied:
            wrong = _chunk_wrong(one)
            if wrong:
                return wrong
            last |= {item.table.name: item for item in one.items if isinstance(item, LastPk)}
    for table, said in last.items():
        copied = stands.tables[table]
        upto = None if said.key is None else int(said.key[0])
        if not copied.done and copied.upto != upto:
            return f"{table} is copied up to {upto}, and its vgtid says {copied.upto}"
    return ""


def _chunk_wrong(one: Transaction) -> str:
    rows = [item for item in one.items if isinstance(item, Row)]
    last = [item for item in one.items if isinstance(item, LastPk)]
    if len(last) != 1 or one.items[-1] is not last[0]:
        return "copied rows without the key up to which they are"
    if any(row.before is not None for row in rows):
        return "a copied row that says what was before"
    return ""


def _must_complete(told: Told, before: Cut, now: Cut) -> None:
    """The end of a table's copy comes with its last rows, and that of all copies with the last of them."""
    said = {(one.shard, one.table.name) for one in told.completed if one.table is not None}
    ended = {
        (shard, table)
        for shard, stands in now.shards.items()
        for table, copied in stands.tables.items()
        if copied.done
        and not (before.shards[shard].tables[table].done and (shard, table) not in told.restarted)
    }
    if said != ended:
        raise Wrong(f"that {sorted(said)} are copied was said, and it is {sorted(ended)}")
    all_said = any(one.table is None for one in told.completed)
    if all_said != (now.done and bool(ended)):
        raise Wrong(f"that all is copied was {'told' if all_said else 'not told'}; {sorted(ended)} are since")


def _state(log: History, table: str, place: Place, copied: Copied, view: View) -> dict[int, Values]:
    """A table's rows at a place as a client has them that has received so much of it."""
    found = {key: view.of(row) for key, row in log.rows_at(table, place).items() if copied.has(key)}
    return {key: values for key, values in found.items() if values is not None}


def _between(log: History, since: Place, until: Place) -> tuple[int, list[Group]]:
    """How many groups end at the first place or before it, and those that end behind it, up to the second."""
    first = bisect_right(log.groups, since, key=lambda group: group.end)
    last = bisect_right(log.groups, until, key=lambda group: group.end)
    return first, log.groups[first:last]


def _apart(one: Mapping[int, Values], other: Mapping[int, Values]) -> list[tuple[int, Values]]:
    return [(key, values) for key, values in sorted(one.items()) if other.get(key) != values][:3]
