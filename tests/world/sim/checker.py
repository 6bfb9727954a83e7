"""Who looks at every epoch of a feed, and knows what may become of it. It takes a manifest's values, and no code.

A feed reads one log of each shard. RESET begins another, in which places of the same names mean other rows. Which log a
feed reads is seen: each of its epochs has to be right in the same one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.world.sim.history import History, Place, Row
from tests.world.sim.server import Server
from tests.world.sim.sink import Storage


class Wrong(AssertionError):
    """An epoch is not what the shards held."""


class Fate(Enum):
    """What a feed may do next: nothing that it has not read is lost, that may be, or that is so."""

    GOES_ON = 1
    MAY_END = 2
    MUST_END = 3


@dataclass
class Checker:
    """Of one feed. `fault`: what was wrong first. `alone`: epochs without a shard.

    `planned`: manifests that the state store may hold and the sink does not.
    """

    seed: int
    servers: Sequence[Server]
    storage: Storage
    fault: Wrong | None = None
    epochs: int = 0
    alone: int = 0
    planned: list[Any] = field(default_factory=list)
    renewed: int = 0
    begun_again: int = 0
    _newest: Any = None
    _exact: dict[Any, Any] = field(default_factory=dict)
    _whole: set[Any] = field(default_factory=set)
    _logs: dict[str, list[History]] = field(default_factory=dict)
    _born_in: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._born_in = {server.name: len(server.histories) - 1 for server in self.servers}

    def check(self, manifest: Any) -> None:
        """Compare what readers see of an epoch with what the shards held at its cut."""
        self.epochs += 1
        self.alone += bool(manifest.absent)
        before, self._newest = self._newest, manifest
        if before is not None:
            self._must_follow(before, manifest)
        self._must_stand(manifest)
        for server in self.servers:
            position = manifest.cut.positions[server.name]
            at = _place(position)
            if before is not None and _begins_again(before, manifest, server.name):
                self._must_be_lost(before, manifest, server)
            possible = [log for log in self._possible(server) if log.may_hold(at, position.born)]
            differences = [(log, self._difference(manifest, server.name, at, log)) for log in possible]
            self._logs[server.name] = [log for log, wrong in differences if not wrong]
            if not self._logs[server.name]:
                what = differences[0][1] if differences else "its log was reset before"
                self._found(manifest, f"{server.name} at {at}: {what}")

    def _must_be_lost(self, before: Any, manifest: Any, server: Server) -> None:
        """A shard begins again only where its log may be lost; it may read any of its logs then."""
        self.begun_again += 1
        if self._fate(server, before) is Fate.GOES_ON:
            self._found(manifest, f"{server.name} begins again, and its log goes on")
        self._logs.pop(server.name, None)

    def _possible(self, server: Server) -> list[History]:
        """The logs that the feed may be reading."""
        return self._logs.get(server.name, server.histories[self._born_in[server.name] :])

    def _difference(self, manifest: Any, shard: str, at: Place, log: History) -> str:
        """What readers see otherwise of a shard than the log's rows at a place; empty where nothing is."""
        generations = {shape.table: shape.generation for shape in manifest.shapes}
        for copy in manifest.cut.shards[shard].copies:
            expected = dict(_copied(copy, log.rows_at(copy.table.name, at)))
            rows = self.storage.tables[copy.table, generations[copy.table]].rows
            found = {key: _trimmed(row) for (of, key), row in rows.items() if of == shard}
            if found != expected:
                more, less = found.items() - expected.items(), expected.items() - found.items()
                return f"{copy}: read {sorted(more)[:4]}, held {sorted(less)[:4]}"
        return ""

    def _must_stand(self, manifest: Any) -> None:
        """A stale table is as of the last epoch at which it was not, and its rows do not change."""
        stale = {one.table: one.epoch for one in manifest.stale}
        for table, epoch in stale.items():
            then, held, rows = self._exact[table]
            if then != epoch:
                self._found(manifest, f"{table} stands as of {epoch}, and was exact at {then}")
            if held.rows != rows:
                self._found(manifest, f"{table} is stale, and its rows have changed")
        for shape in manifest.shapes:
            if shape.table not in stale:
                held = self.storage.tables[shape.table, shape.generation]
                before = self._exact.get(shape.table)
                self.renewed += before is not None and before[1] is not held
                self._exact[shape.table] = manifest.epoch, held, dict(held.rows)
                if all(copy.done for copy in manifest.cut.copies if copy.table == shape.table):
                    self._whole.add(shape.table)
                elif shape.table in self._whole:
                    self._found(manifest, f"{shape.table} was complete, and is a part of itself")

    def _must_follow(self, before: Any, manifest: Any) -> None:
        """Numbers grow, positions do not go back, and a shard that is absent stands where it stood."""
        if manifest.previous != before.epoch or manifest.epoch <= before.epoch:
            self._found(manifest, f"it follows {manifest.previous}, and the newest is {before.epoch}")
        for server in self.servers:
            old, new = (_place(one.cut.positions[server.name]) for one in (before, manifest))
            if new < old and not _begins_again(before, manifest, server.name):
                self._found(manifest, f"{server.name} goes back from {old} to {new}")
            # Where files were purged that held nothing more, the same place has another name.
            passed = any(old < group.end <= new for group in server.history.groups)
            if server.name in manifest.absent and passed and not _begins_again(before, manifest, server.name):
                self._found(manifest, f"{server.name} is absent, and moves from {old} to {new}")
        for shard in manifest.absent:
            old, new = (one.cut.shards[shard].copies for one in (before, manifest))
            stale = {one.table for one in manifest.stale}
            if [c for c in old if c.table not in stale] != [c for c in new if c.table not in stale]:
                self._found(manifest, f"{shard} is absent, and its copies go on from {old} to {new}")

    def _found(self, manifest: Any, what: str) -> None:
        self.fault = self.fault or Wrong(f"seed {self.seed}: epoch {manifest.epoch}: {what}")

    # What may become of the feed.

    def fate(self) -> Fate:
        """The worst of all shards; of manifests that may or may not stand, what holds of all."""
        fates = {
            max((self._fate(s, m) for s in self.servers), key=lambda f: f.value) for m in self._standing()
        }
        return fates.pop() if len(fates) == 1 else Fate.MAY_END

    def needed(self, server: Server) -> int:
        """Number of the oldest log file that a careful operator keeps."""
        return min((self._needed(server, manifest) for manifest in self._standing()), default=1)

    def _standing(self) -> Iterator[Any]:
        newest = [self._newest] if self._newest is not None else []
        after = newest[0].epoch if newest else 0
        self.planned = [manifest for manifest in self.planned if manifest.epoch > after]
        yield from newest + self.planned

    def _fate(self, server: Server, manifest: Any) -> Fate:
        position = manifest.cut.positions[server.name]
        at = _place(position)
        possible = [log for log in self._possible(server) if log.may_hold(at, position.born)]
        log = server.history
        if log not in possible:
            return Fate.MUST_END
        if len(possible) > 1:
            return Fate.MAY_END
        if log.has_lost(at):
            return Fate.MUST_END
        resets = position.resets
        counted = resets is None or resets.count != server.resets
        # What is told of a start is a second too late at times, so two starts a second apart may look like one or not.
        started_since = resets is not None and server.start_seconds >= resets.asked
        restarted = resets is None or started_since or abs(resets.started - server.start_seconds) > 1
        # GTIDs show that a purged file held nothing more, unless they may have begun anew.
        shown = server.strict and str(position.gtids) and not counted and not restarted
        purged = log.kept > at[0] and not shown
        rows_purged = any(log.kept > one.start.number for one in position.prepared)
        # A file that is as young as the position in it tells nothing of a RESET that was counted since. A place that no
        # event ends at tells nothing of a restart.
        young = resets is None or position.born >= resets.asked
        unclear = young and (counted or (restarted and position.event is None))
        xa_moved = bool(position.prepared) and log.kept > at[0]
        return Fate.MAY_END if purged or rows_purged or unclear or xa_moved else Fate.GOES_ON

    @staticmethod
    def _needed(server: Server, manifest: Any) -> int:
        position = manifest.cut.positions[server.name]
        at = _place(position)
        files: list[int] = [one.start.number for one in position.prepared]
        unread = [group.start[0] for group in server.history.groups if group.end > at]
        # Under another base name GTIDs may come back, so they do not show that a purged file held nothing more.
        renamed = position.at.base != server.files[-1].base
        if files or renamed or not server.strict or not str(position.gtids):
            return min([at[0], *files])
        return min(unread, default=server.files[-1].number)


def _place(position: Any) -> Place:
    return position.at.number, position.at.offset


def _begins_again(before: Any, manifest: Any, shard: str) -> bool:
    """Whether a shard stands at a new first cut, since its log was lost: its tables have begun to wait for an order."""
    new = [one for one in manifest.stale if one.waits and not one.asked and one not in before.stale]
    return any(f"shard {shard}: " in one.reason for one in new)


def _copied(progress: Any, rows: dict[int, Row]) -> Iterator[tuple[int, Row]]:
    """The rows that readers are to see of a table: those that are copied, and those born later."""
    for key, row in rows.items():
        if (
            progress.done
            or (progress.copied is not None and key <= int(progress.copied[0]))
            or (progress.born_after is not None and key > int(progress.born_after[0]))
        ):
            yield key, _trimmed(row)


def _trimmed(row: Row) -> Row:
    """A row without the columns that were added later."""
    while row and row[-1] is None:
        row = row[:-1]
    return row
