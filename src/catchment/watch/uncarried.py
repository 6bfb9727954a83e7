"""Tables that `tables` of the feed file takes and the feed does not carry. The catalogs show them at a run's start,
then the DDL of every epoch does. The journal keeps the set."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec.structs import replace

from catchment.config import NotifyEvent
from catchment.model.epoch import Manifest
from catchment.model.log_fields import about
from catchment.model.named import by_cause, tables_named
from catchment.model.table import TableId
from catchment.schema.existence import Existence
from catchment.state.carried import new_tables_then
from catchment.state.journal import Journal
from catchment.state.notes import NotCarried
from catchment.watch.notify import Notifier
from catchment.watch.vitals import Vitals

_log = logging.getLogger(__name__)


class Uncarried:
    """Keeps the set for one run. `enters`: whether `tables` takes a table. `carries`: whether new tables join the feed.
    One call at a time; both methods raise StateError."""

    def __init__(
        self,
        enters: Callable[[TableId], bool],
        journal: Journal,
        vitals: Vitals,
        notifier: Notifier,
        *,
        carries: bool = True,
    ) -> None:
        self._enters = enters
        self._carries = carries
        self._journal = journal
        self._vitals = vitals
        self._notifier = notifier
        self.now: tuple[NotCarried, ...] = ()

    def begin(self, standing: Manifest, present: Mapping[str, Collection[TableId]]) -> None:
        """The run begins: `present` are the tables of each shard that the rules take."""
        known = {(one.shard, one.table): one for one in self._journal.uncarried()}
        carried = standing.tables
        self._replace(
            known.get((shard, table), NotCarried(table, shard, standing.epoch))
            for shard, tables in present.items()
            for table in tables
            if table not in carried
        )

    def observe(self, manifest: Manifest, existence: Mapping[str, Existence]) -> None:
        """An epoch is committed: `existence` says what its DDL did, by shard. New tables are logged at once."""
        entered = {one.table for one in self.now if one.table in manifest.known.tables}
        if not entered and not any(found.schemas_gone or found.there for found in existence.values()):
            return
        left = [
            _as_of(one, existence.get(one.shard))
            for one in self.now
            if one.table not in entered and _is_left(one, existence.get(one.shard))
        ]
        known = {(one.shard, one.table) for one in left}
        # The server may take names of any case for one.
        carried = {str(table).lower() for table in manifest.tables}
        made = [
            NotCarried(table, shard, manifest.epoch, found.born.get(table))
            for shard, found in existence.items()
            for table, is_there in found.there.items()
            if is_there and (shard, table) not in known and str(table).lower() not in carried
            and self._enters(table)
        ]  # fmt: skip
        self._tell(made, {one.table for one in left})
        self._replace([*left, *made])

    def _tell(self, made: Iterable[NotCarried], known: Collection[TableId]) -> None:
        """Each table is told of once, on the shards that had it first; those of the same shards in one line."""
        shards: dict[TableId, list[str]] = {}
        for one in made:
            if one.table not in known:
                shards.setdefault(one.table, []).append(one.shard)
        first = sorted((table, f"shard {', '.join(sorted(on))}") for table, on in shards.items())
        for where, tables in by_cause(first).items():
            then = new_tables_then(tables, carries=self._carries)
            message = f"{tables_named(tables)} new on {where}: {then}"
            _log.warning("%s", message, extra=about(tables=tables))
            self._notifier.tell(NotifyEvent.NEW_TABLE, message)

    def _replace(self, tables: Iterable[NotCarried]) -> None:
        self.now = tuple(sorted(tables, key=lambda one: (one.table, one.shard)))
        self._vitals.observe_uncarried(len({one.table for one in self.now}))
        self._journal.put_uncarried(self.now)


def _as_of(one: NotCarried, existence: Existence | None) -> NotCarried:
    """With where its CREATE stands: it may have been made again."""
    return one if existence is None else replace(one, birth=existence.birth_after(one.table, one.birth))


def _is_left(one: NotCarried, existence: Existence | None) -> bool:
    """Whether a table is there still; nothing is known of a shard that did not arrive."""
    return existence is None or existence.after(one.table, before=True)
