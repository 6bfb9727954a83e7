"""Tables that are born in the log: every row stands behind their CREATE, so they are read there, and none is copied."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.config import Feed
from catchment.engine.port import Engine
from catchment.epoch.mend import gathered
from catchment.epoch.work import BirthsReceipt, BirthsTask, Output, SegmentReceipt, SegmentTask, Target
from catchment.feed.applier import Applier
from catchment.feed.asked import Asked
from catchment.model.birth import Birth, Born
from catchment.model.epoch import Manifest, Stood, TableDelta, TableShape
from catchment.model.errors import CatchmentError, CutMissed
from catchment.model.position import LogOffset, Position, reaches
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import ShardTable, TableId
from catchment.readers.run_task import run_task
from catchment.schema.birth import leaves_empty
from catchment.schema.ddl import Columns, Harmless, altering
from catchment.schema.events import SchemaEvent, SchemaEvents
from catchment.schema.existence import Existence, existence
from catchment.schema.foreign_keys import dropped_keys
from catchment.schema.indexes import touch
from catchment.source.offsets import bytes_between, log_files
from catchment.source.session import connect
from catchment.wire.log.facts import Ddl, Fact

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Read:
    """What the log of the shards holds of a table: its rows, and the copies that are done by that."""

    outputs: tuple[Output, ...]
    copies: dict[str, Copy]


class Births:
    """Reads what tables have that are born in the log, in one run. The loop's thread alone uses it. It remembers tables
    that are there."""

    def __init__(
        self, feed: Feed, endpoints: Mapping[str, Endpoint], engine: Engine, applier: Applier
    ) -> None:
        self._feed, self._endpoints = feed, endpoints
        self._engine, self._applier = engine, applier
        self._copied: set[tuple[ShardTable, Birth]] = set()
        self._heard: dict[ShardTable, Birth | None] = {}
        self._ahead: dict[tuple[ShardTable, Born | None], tuple[SegmentTask, Output | None]] = {}

    def hear(self, existence: Mapping[str, Existence]) -> None:
        """An epoch was read: `existence` says what its DDL did, by shard."""
        for shard, found in existence.items():
            for of, birth in list(self._heard.items()):
                if of.shard == shard:
                    self._heard[of] = found.birth_after(of.table, birth)
                    if not found.after(of.table, before=True):
                        del self._heard[of]
            for table, is_there in found.there.items():
                if is_there and self._feed.enters(table):
                    self._heard[ShardTable(shard, table)] = found.born.get(table)
        self._copied = still_there(self._copied, existence)

    def known(self, table: TableId, before: Mapping[str, Birth]) -> dict[str, Birth]:
        """Where the logs have the CREATE of a table, by shard. `before`: the same as of the run's begin."""
        births: dict[str, Birth | None] = {**before}
        births |= {of.shard: birth for of, birth in self._heard.items() if of.table == table}
        return {shard: birth for shard, birth in births.items() if birth is not None}

    def of(
        self, shard: str, state: ShardState, table: TableId, birth: Birth | None, asked: Asked
    ) -> Born | None:
        """Whether the log has all rows of a table up to the shard's position; None where they are to be copied.

        `asked`: what the catalog said of the table is what the log says to its end. Raises CutMissed where DDL on the
        table stands behind the position.
        """
        of = ShardTable(shard, table)
        if birth is None or (of, birth) in self._copied:
            return None
        if not self._is_near(state, birth, asked.of(shard).log_files):
            return None
        try:
            defined = _defined(asked.statements(shard, birth.start, table), table, birth)
        except CatchmentError as error:
            self._give_up(of, birth, str(error))
            return None
        if defined is None:
            self._give_up(of, birth, "DDL behind its CREATE may have brought rows")
            return None
        if reaches(defined, state.position.at):
            raise CutMissed(f"shard {shard}: DDL on {table} at {defined} is read with the next epoch")
        return Born(birth, defined)

    def read(
        self,
        entering: Manifest,
        shape: TableShape,
        born: Mapping[str, Born],
        stood: Mapping[str, Stood] | None = None,
    ) -> Read:
        """What the logs hold of a table up to the cut of the epoch with which it enters. Of a shard whose log does not
        tell it there is no copy: its rows are to be copied. `stood`: shards whose rows up to there the lake has."""
        table, before = shape.table, stood or {}
        tasks = [self._task(entering, shape, shard, one.birth.start, born=one) for shard, one in born.items()]
        tasks += [self._task(entering, shape, shard, one.position) for shard, one in before.items()]
        outputs: list[Output] = []
        copies: dict[str, Copy] = {}
        for task in list(tasks):
            known, output = self._ahead.get(_of(task), (None, None))
            if known is not None and _reads_the_same(known, task):
                tasks.remove(task)
                copies[task.endpoint.shard] = _done(table, output)
                outputs += [] if output is None else [output]
        for task, receipt in zip(tasks, self._engine.each(run_task, tasks) if tasks else (), strict=True):
            shard = task.endpoint.shard
            if (
                isinstance(receipt, SegmentReceipt)
                and not receipt.stopped
                and not receipt.altered
                and receipt.reached.at == task.stop
            ):
                told = _done(table, *receipt.outputs)
                copies[shard] = before[shard].copy if shard in before else told
                outputs += receipt.outputs
            elif shard in born:
                why = getattr(receipt, "error", "the log has stopped to tell them")
                self._give_up(ShardTable(shard, table), born[shard].birth, str(why))
        return Read(tuple(outputs), copies)

    def read_ahead(self, entering: Iterable[tuple[Manifest, TableShape, Mapping[str, Born]]]) -> None:
        """Read at once what `read` will be asked of several tables, with one reading of each log. Until the next call
        it is remembered."""
        self._ahead = {}
        groups: dict[str, list[SegmentTask]] = {}
        for manifest, shape, born in entering:
            for shard, one in born.items():
                task = self._task(manifest, shape, shard, one.birth.start, born=one)
                if not task.start.definitions:  # its log describes itself
                    groups.setdefault(shard, []).append(task)
        work = [BirthsTask(tuple(tasks)) for tasks in groups.values() if len(tasks) > 1]
        for group, receipt in zip(work, self._engine.each(run_task, work) if work else (), strict=True):
            if isinstance(receipt, BirthsReceipt):
                mine = {one.shapes[0].table: one for one in group.tasks}
                self._ahead |= {_of(mine[one.table]): (mine[one.table], one.output) for one in receipt.told}

    def written(self, entering: Manifest, shape: TableShape, outputs: Sequence[Output]) -> Manifest:
        """The epoch with which a table enters, with the rows that were read."""
        if not outputs:
            return entering
        files = self._applier.sink.complete(entering.epoch, gathered(entering, outputs))
        upserts, deletes = sum(one.upserts for one in outputs), sum(one.deletes for one in outputs)
        delta = TableDelta(shape, tuple(files[shape.table]), upserts, deletes)
        return replace(entering, deltas=(delta,), changes=upserts + deletes)

    def is_near(self, shard: str, state: ShardState, birth: Birth) -> bool:
        """Whether the log since the birth is little enough to be read once more. Rows of XA transactions prepared in
        front of it stand elsewhere."""
        with connect(self._endpoints[shard], state.position.server) as session:
            return self._is_near(state, birth, log_files(session))

    def _is_near(self, state: ShardState, birth: Birth, sizes: Mapping[str, int]) -> bool:
        start, stop = birth.start, state.position
        if start.server != stop.server or start.prepared or not reaches(stop.at, birth.at):
            return False
        return bytes_between(sizes, start.at, stop.at) <= self._feed.copying.log_budget

    def _give_up(self, of: ShardTable, birth: Birth, why: str) -> None:
        self._copied.add((of, birth))
        _log.info("%s on %s is not taken from the log alone: %s", of.table, of.shard, why)

    def _task(
        self, entering: Manifest, shape: TableShape, shard: str, start: Position, *, born: Born | None = None
    ) -> SegmentTask:
        table = shape.table
        state = entering.cut.shards[shard]
        definitions = tuple(one for one in state.definitions if one.table == table)
        target = Target(
            self._applier.sink.writer,
            tuple(self._endpoints),
            entering.epoch,
            str(self._applier.lease.fence),
        )
        return SegmentTask(
            endpoint=self._endpoints[shard],
            start=ShardState(start, definitions=definitions, keys=()),
            stop=state.position.at,
            shapes=(shape,),
            target=target,
            holders={table: entering.holders[table]},
            mask_key=self._feed.key_of_masks(),
            born=born,
        )


def still_there(
    births: Iterable[tuple[ShardTable, Birth]], existence: Mapping[str, Existence]
) -> set[tuple[ShardTable, Birth]]:
    """Those of the births whose tables are there after an epoch, and were not made again. `existence`: what the DDL of
    the epoch did, by shard."""
    return {
        (of, birth)
        for of, birth in births
        if of.shard not in existence or existence[of.shard].birth_after(of.table, birth) == birth
    }


def _of(task: SegmentTask) -> tuple[ShardTable, Born | None]:
    return ShardTable(task.endpoint.shard, task.shapes[0].table), task.born


def _reads_the_same(one: SegmentTask, other: SegmentTask) -> bool:
    return all(
        mine == theirs
        for mine, theirs in (
            (one.shapes, other.shapes),
            (one.start, other.start),
            (one.stop, other.stop),
            (one.holders, other.holders),
            (one.target.epoch, other.target.epoch),
        )
    )


def _done(table: TableId, *outputs: Output | None) -> Copy:
    """The copy of a table of which the log has told all rows."""
    rows = sum(output.upserts for output in outputs if output is not None)
    return Copy(table, done=True, rows=rows, rows_expected=rows)


def _defined(facts: Iterable[Fact], table: TableId, birth: Birth) -> LogOffset | None:
    """Where the last DDL stands that defined a table, up to the end of the log. None where the table is another one by
    then, or where DDL may have given it rows or taken some. `facts`: from in front of its birth on."""
    events = [event for event in SchemaEvents([table]).of(facts) if isinstance(event.fact, Ddl)]
    if existence(events, birth.start).born.get(table) != birth:
        return None
    defining = [one for one in events if reaches(one.at, birth.at) and _concerns(one, table)]
    # What a foreign key did that is gone is in no log.
    known = all(
        (isinstance(one.effect, Columns | Harmless) or _leaves_empty(one, table))
        and not dropped_keys(one, table)
        for one in defining
        if one.at != birth.at
    )
    return defining[-1].at if known else None


def _leaves_empty(event: SchemaEvent, table: TableId) -> bool:
    """Whether a statement that is not followed is an ALTER of the table that brings no row where there is none."""
    text = event.text
    return leaves_empty(altering(text.words, text.schema, table))


def _concerns(event: SchemaEvent, table: TableId) -> bool:
    touched = touch(event, table)
    changed = touched.drops or touched.adds_unique or dropped_keys(event, table)
    return not isinstance(event.effect, Harmless) or bool(changed)
