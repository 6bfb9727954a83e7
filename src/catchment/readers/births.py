"""A task that reads one shard's log once for many tables that were made in it, and writes the rows of each.

A table that is not told here is read by a task of its own, which says why. So all that is unusual is left to that.
"""

from catchment.epoch.work import BirthsReceipt, BirthsTask, BornRows, SegmentTask
from catchment.epoch.xa import Commits, commits
from catchment.model.epoch import Part, Shapes
from catchment.model.errors import SourceError
from catchment.model.position import reaches
from catchment.model.table import TableId
from catchment.readers.begin import begin_of
from catchment.readers.changes import born_states
from catchment.readers.checks import must_be_whole
from catchment.readers.segment_images import SegmentImages
from catchment.readers.unread import unread
from catchment.schema.chosen import Chosen
from catchment.schema.columns import shape_after
from catchment.schema.ddl import named_by
from catchment.schema.events import SchemaEvents, tables_here, text_of
from catchment.schema.passage import Passage
from catchment.schema.verbs import Act
from catchment.source.identity import must_be_same_log
from catchment.source.log import read_log
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.log.facts import Ddl, Fact, Statement


def read_births(task: BirthsTask) -> BirthsReceipt:
    """Read the log from in front of the first birth; raises CatchmentError."""
    first = task.first
    shard, start = first.endpoint.shard, first.start.position
    shapes = Shapes(shape for one in task.tasks for shape in one.shapes)
    must_be_same_log(first.endpoint, start)
    with SegmentImages(shard, shapes.by_table, {}) as images:
        wanted = Wanted.of(shapes, mask_key=first.mask_key)
        with read_log(first.endpoint, start.server, start, first.stop, wanted) as log:
            for part in log.images():
                images.add(part)
        stretch = log.stretch
        lacking = unread(shard, stretch.facts)
        must_be_whole(shard, start, first.stop, stretch, lacking)
        reading = _Reading(task, stretch, commits(shard, start.prepared, stretch.xa), images)
        told = [
            reading.of(one, number)
            for number, one in enumerate(task.tasks)
            if one.shapes[0].table not in lacking
        ]
    return BirthsReceipt(shard, tuple(one for one in told if one is not None))


class _Reading:
    """What one reading of the log holds of each table."""

    def __init__(self, task: BirthsTask, stretch: Stretch, ends: Commits, images: SegmentImages) -> None:
        self._stretch, self._ends, self._images = stretch, ends, images
        self._met = images.met()
        tables = Chosen(one.shapes[0].table for one in task.tasks)
        self._meaning: dict[TableId, list[Fact]] = {}
        # Rows of a table may be changed by a statement that does not name it.
        self._by_text = False
        for fact in stretch.facts:
            if isinstance(fact, Ddl | Statement):
                text = text_of(fact)
                self._by_text |= text.changes_rows or Act.NOT_KNOWN in text.kinds
                for table in named_by(text, tables):
                    self._meaning.setdefault(table, []).append(fact)

    def of(self, task: SegmentTask, number: int) -> BornRows | None:
        """The rows of the one table of a task, written; None where a task of its own is to read them. Raises what ends
        every task."""
        shape, born, shard = task.shapes[0], task.born, task.endpoint.shard
        table = shape.table
        if born is None or self._by_text or table in self._images.keyless:
            return None
        facts = self._meaning.get(table, ())
        events = list(SchemaEvents([table], tables_here({table: shape}, shard), born.defined).of(facts))
        try:
            begin = begin_of(shard, born, events)
            if any(not reaches(born.defined, one.at) for one in events):
                return None  # something was done to it behind its last definition
            met = begin.of_table({table: self._met[table]} if table in self._met else {})
            shape = shape_after(
                shape, shard, task.holders[table], Passage.of(met.get(table), ()), task.target.epoch
            )
            spool = self._images.spools.get(table)
            states = (
                () if spool is None else born_states(task, self._stretch, self._ends, spool, shape, begin)
            )
            return BornRows(table, task.target.emit(states, shape, shard, Part.CHANGES, number))
        except SourceError:
            return None
