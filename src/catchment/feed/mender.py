"""Mending, between two epochs of a run: chunks that verify found different are compared again, and written.

The comparison is as of the standing epoch, and what it finds is an epoch of its own with the same cut. No log lies
between the two. So nothing that the source has written meanwhile can be lost, and nothing old can come back.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Self

from catchment import world
from catchment.config import Feed
from catchment.engine.port import Engine
from catchment.epoch.mend import gathered, mended, why_not
from catchment.epoch.work import Failed, Output
from catchment.feed.applier import Applier
from catchment.feed.commands import Commands
from catchment.feed.comparisons import Comparisons, compare
from catchment.feed.throttle import Throttle
from catchment.model.epoch import EpochRow, Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import CatchmentError, ProgramFault, Retry, SinkError
from catchment.model.log_fields import about
from catchment.model.order import Answer, Kept, Mended
from catchment.model.retries import concerns_all, may_repeat
from catchment.model.table import TableId
from catchment.readers.strays import StrayTask
from catchment.readers.verify import VerifyReceipt, VerifyTask
from catchment.state.faults import Fault
from catchment.watch.throttles import Throttles

# An order whose chunks cannot be read for so long is refused: a table may be locked, or altered.
GIVE_UP_SECONDS = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Came:
    """What the tasks of an epoch came to: changes to write, what was mended by each order, and why others failed."""

    outputs: list[Output]
    mended: dict[Kept, Mended]
    failed: dict[Kept, CatchmentError | str]


class Mender:
    """Carries out the orders to mend of one run, so many of a shard in an epoch as it has groups of chunks. A shard
    that is throttled is not mended meanwhile. The loop's thread alone uses it."""

    def __init__(
        self,
        comparisons: Comparisons,
        engine: Engine,
        applier: Applier,
        commands: Commands,
        groups: int,
        throttle: Throttle | None = None,
    ) -> None:
        self._comparisons, self._engine, self._applier = comparisons, engine, applier
        self._commands, self._groups = commands, groups
        self._throttle = throttle or Throttle()
        self._failures = 0
        self._failing: dict[int, float] = {}
        self._shut: frozenset[str] = frozenset()

    @classmethod
    def of(cls, feed: Feed, engine: Engine, applier: Applier, commands: Commands, throttle: Throttle) -> Self:
        """What mends the lake of a feed, for its one runner."""
        endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
        comparisons = Comparisons(endpoints, applier.sink, feed.key_of_masks())
        own = throttle.beside(Throttles("mended"))
        return cls(comparisons, engine, applier, commands, feed.copying.groups_per_shard, own)

    def due(self) -> bool:
        """Whether something is to be mended now. Then the standing epoch must be applied before `next`."""
        return bool(self._bearable())

    def next(self, standing: Manifest) -> Manifest | None:
        """The epoch behind `standing` that mends; None where nothing is to be written. Raises what cannot pass."""
        try:
            found = self._next(standing)
        except CatchmentError as error:
            if self._applier.stop.is_set():
                return None
            if concerns_all(error):
                raise
            self._failures += 1
            if not may_repeat(error, self._failures):
                raise
            _log.warning("rows are mended later: %s", error, extra=about(error=error))
            return None
        self._failures = 0
        return found

    def _bearable(self) -> list[Kept]:
        """The orders to mend of shards that are not throttled. What no shard is asked for is never throttled."""
        mends = self._commands.mends
        if not mends and not self._shut:
            return []
        self._shut = self._throttle.shut({kept.order.shard for kept in mends if kept.order.chunks})
        return [kept for kept in mends if kept.order.shard not in self._shut or not kept.order.chunks]

    def _next(self, standing: Manifest) -> Manifest | None:
        row = self._applier.sink.newest()
        if row is None or row.manifest.epoch != standing.epoch:
            return None
        chosen = self._chosen(standing)
        if not chosen:
            return None
        self._engine.check()
        self._applier.lease.check()
        epoch = standing.epoch + 1  # the next tick has a higher number, or is waited for
        came = self._carried_out(row, standing, chosen, epoch)
        self._applier.fault(Fault.DURING_READ)
        self._refuse_failing(came)
        if not came.outputs:
            self._commands.mended(self._answers(came, standing.epoch), None)
            return None
        files = self._applier.sink.complete(epoch, gathered(standing, came.outputs))
        self._commands.mended(self._answers(came, epoch), epoch)
        return mended(standing, epoch, came.outputs, files)

    def _chosen(self, standing: Manifest) -> list[Kept]:
        """The orders of this epoch, one of each table and shard: two may name the same rows, which an epoch brings
        once. Those that make no sense are refused."""
        refused: dict[Kept, Answer] = {}
        chosen: dict[str, dict[TableId | None, Kept]] = {}
        # Those that failed come last, so that a locked table holds up no other.
        for kept in sorted(self._bearable(), key=lambda kept: kept.number in self._failing):
            why = why_not(standing, kept.order)
            if why:
                refused[kept] = Answer(False, why, world.now_us())
            elif hindered := _hindered(standing, kept.order.shard):
                if self._has_failed(kept):
                    refused[kept] = Answer(False, hindered, world.now_us())
            else:
                chosen.setdefault(kept.order.shard, {}).setdefault(kept.order.table, kept)
        self._commands.mended(refused, None)
        return [kept for of in chosen.values() for kept in islice(of.values(), self._groups)]

    def _carried_out(self, row: EpochRow, standing: Manifest, chosen: Sequence[Kept], epoch: int) -> _Came:
        came = _Came([], {}, {})
        tasks: dict[Kept, VerifyTask | StrayTask] = {}
        for kept in chosen:
            try:
                tasks[kept] = self._task(row, standing, kept, epoch)
            except SinkError as error:
                came.failed[kept] = error
        try:
            receipts = self._engine.each(compare, list(tasks.values()))
        except ProgramFault as fault:
            # An order that cannot be carried out must not end this run, and the next, and the next.
            receipts = [Failed(kept.order.shard, fault) for kept in tasks]
        for kept, receipt in zip(tasks, receipts, strict=True):
            if isinstance(receipt, Failed):
                came.failed[kept] = receipt.error
            elif receipt.refused:
                came.failed[kept] = receipt.refused[0][1]
            else:
                found = receipt.found.values()
                self._take(receipt)
                counts = (Mended(one.missing, one.extra, one.changed) for one in found)
                came.mended[kept] = sum(counts, Mended())
                came.outputs.extend(receipt.outputs)
        return came

    def _task(self, row: EpochRow, standing: Manifest, kept: Kept, epoch: int) -> VerifyTask | StrayTask:
        attempt = str(self._applier.lease.fence)
        again = kept.number in self._failing
        return self._comparisons.mending(row, standing, kept.order, epoch=epoch, attempt=attempt, again=again)

    def _take(self, receipt: VerifyReceipt) -> None:
        """Take from the rates what was read of a shard."""
        for copied in chain.from_iterable(receipt.compared.values()):
            self._throttle.rates.take(receipt.shard, copied.rows, copied.bytes)

    def _refuse_failing(self, came: _Came) -> None:
        """Refuse the orders that failed for long, and those that can never be carried out."""
        refused = {}
        for kept in came.mended:
            self._failing.pop(kept.number, None)
        for kept, why in came.failed.items():
            never = isinstance(why, CatchmentError) and why.retry is Retry.NEVER
            if self._has_failed(kept) or never:
                refused[kept] = Answer(False, f"its rows could not be compared: {why}", world.now_us())
        self._commands.mended(refused, None)

    def _has_failed(self, kept: Kept) -> bool:
        """Count a try of an order that failed; whether it has failed for too long."""
        now = world.steady_seconds()
        return now - self._failing.setdefault(kept.number, now) >= GIVE_UP_SECONDS

    def _answers(self, came: _Came, epoch: int) -> dict[Kept, Answer]:
        """Answers to the orders that were carried out."""
        now, answers = world.now_us(), {}
        for kept, found in came.mended.items():
            said = f"it is equal as of epoch {epoch_text(epoch)}"
            if found.total:
                said = f"mended as of epoch {epoch_text(epoch)}: {found}"
            answers[kept] = Answer(True, said, now, found)
        return answers


def _hindered(standing: Manifest, shard: str) -> str:
    """Why no chunk of a shard can be read as of an epoch; empty where it can. `shard` may be empty, too."""
    if shard in standing.absent:
        return f"shard {shard} is away"
    if shard and standing.cut.shards[shard].sealed is None:
        return f"nothing of the log of shard {shard} is proven visible yet; run the feed"
    return ""
