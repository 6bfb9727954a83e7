"""The images of a turn that a stream tells: in memory or on disk, and read again when they are told."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catchment.epoch.xa import Commits
from catchment.model.chunk import chunk_key
from catchment.model.errors import Unsupported
from catchment.model.image import CHANGE, GROUP, INTERNAL, SEQ
from catchment.model.shard import Copy
from catchment.model.table import Table, TableId
from catchment.rewind.change_types import typed
from catchment.rewind.keyless import as_inserts
from catchment.rewind.ranges import follows_log
from catchment.rewind.sequence import ImageSequence
from catchment.rewind.states import in_commit_order, without_voids
from catchment.schema.passage import Stopped
from catchment.serve.changes.rows import group_of, numbered
from catchment.serve.stream.few_images import FEW, FewImages, Part
from catchment.serve.stream.tables import Known
from catchment.source.stretch import Stretch
from catchment.wire.log.facts import Images


@dataclass(frozen=True, slots=True)
class Changed:
    """Images of one version of a table, with their change types, in the order in which they were committed. `first` and
    `last`: the least and the greatest of their numbers (SEQ)."""

    table: Table
    first: int
    last: int
    _kept: "_Kept | _Merged | FewImages"
    _number: int

    @property
    def rows(self) -> pa.Table:
        """The images, read again if they are on disk."""
        return self._kept.rows(self._number)

    def parts(self, size: int) -> Iterator[Part]:
        """The same in parts of so many, as those take it who tell single rows."""
        if isinstance(self._kept, FewImages):
            yield self._kept.part
            return
        rows = self.rows
        kinds, groups, numbers = (rows.column(name) for name in (CHANGE, GROUP, SEQ))
        shown = rows.select([name for name in rows.schema.names if name not in {*INTERNAL, CHANGE}])
        for start in range(0, rows.num_rows, size):
            part = slice(start, start + size)
            yield Part(
                kinds[part].to_pylist(), groups[part].to_pylist(), numbers[part].to_pylist(), shown[part]
            )

    def within(self, begin: int, end: int) -> bool:
        """Whether some may be of groups from `begin` on and before `end`."""
        return group_of(self.first) < end and group_of(self.last) >= begin


@dataclass(frozen=True, slots=True)
class _Kept:
    """Those of one table, as they came."""

    sequence: ImageSequence
    stretch: Stretch
    ends: Commits

    def rows(self, number: int) -> pa.Table:
        """What counts of a piece."""
        images = without_voids(self.sequence.table(number), self.stretch.voids)
        images = in_commit_order(images, self.ends.moves)
        return numbered(images.filter(pc.less(images.column(GROUP), self.stretch.groups)))


@dataclass(frozen=True, slots=True)
class _Merged:
    """All of one table, with images of what foreign keys did to it."""

    logged: Sequence[pa.Table]
    silent: pa.Table

    def rows(self, number: int) -> pa.Table:
        """The images in order. What a key did comes in front of what did it, as servers that log both have it."""
        schema = self.silent.schema
        parts = [self.silent, *(one.select(schema.names).cast(schema) for one in self.logged)]
        rows = pa.concat_tables(parts)
        logged = np.arange(rows.num_rows) >= self.silent.num_rows
        return rows.take(pa.array(np.lexsort((logged, rows.column(SEQ).to_numpy()))))


@dataclass
class KeptImages:
    """Takes the images of a turn that count. `known`: the shard's tables. `copying`: those not copied whole yet.
    `keyless`: tables of which a row came that has no key. Rows of them are told no more, since two of these would be
    one to a client that keeps rows by key."""

    shard: str
    known: Known
    copying: Mapping[TableId, Copy]
    keyless: dict[TableId, Stopped] = field(default_factory=dict)
    _sequences: dict[TableId, ImageSequence] = field(default_factory=dict)
    _versions: dict[TableId, list[Table]] = field(default_factory=dict)
    _silent: dict[TableId, tuple[Table, pa.Table]] = field(default_factory=dict)
    _few: dict[TableId, tuple[Table, pa.RecordBatch]] = field(default_factory=dict)

    def add(self, read: Images) -> None:
        """Keep what is told of them."""
        table = read.table.id
        if self.copying.get(table) == Copy(table) or table in self.keyless:
            return  # nothing of it was told, and the log may lie before the columns that it has by now
        version = _version(read.table, self.known.shapes[table].key)
        few = self._few.pop(table, None)
        if few is None and table not in self._sequences and self._is_few(version, read.batch):
            self._few[table] = version, read.batch
            return
        for one, batch in ([few] if few is not None else []) + [(version, read.batch)]:
            self._keep(one, pa.Table.from_batches([batch]))

    def _is_few(self, version: Table, batch: pa.RecordBatch) -> bool:
        """Whether images are all told as they are, and need not be looked at together."""
        return (
            batch.num_rows <= FEW
            and version.id not in self.copying
            and self.known.selection(version) is None
            and not any(batch.column(name).null_count for name in version.key)
        )

    def _keep(self, version: Table, images: pa.Table) -> None:
        table = version.id
        try:
            images = as_inserts(images, version.key, f"shard {self.shard}, {table}")
        except Unsupported as why:
            self.keyless[table] = Stopped(table, str(why))
            return
        given, images = self._told(version, images)
        if images.num_rows:
            self._sequences.setdefault(table, ImageSequence()).add(images)
            self._versions.setdefault(table, []).append(given)

    def add_silent(self, table: TableId, images: pa.Table) -> None:
        """Keep images of what foreign keys did to a table, with the numbers of what did it."""
        table_now = self.known.shapes[table].definition
        images = images.select([*(column.name for column in table_now.columns), *INTERNAL])
        given, images = self._told(table_now, images)
        if images.num_rows:
            self._silent[table] = given, numbered(images)

    def _told(self, version: Table, images: pa.Table) -> tuple[Table, pa.Table]:
        """What is told of images, and the table as it is told."""
        selection, copy = self.known.selection(version), self.copying.get(version.id)
        followed = None if copy is None else follows_log(images, chunk_key(version), copy)
        if selection is None:
            return version, typed(images, followed)
        return selection.table, selection.images(images, followed)

    def changed(self, stretch: Stretch, ends: Commits) -> Iterator[Changed]:
        """What counts of them, now that it is known what was undone."""
        for table, (version, batch) in self._few.items():
            if stretch.voids or ends.moves or table in self._silent:
                self._keep(version, pa.Table.from_batches([batch]))
            elif (few := FewImages.of(batch, stretch.groups)) is not None:
                yield Changed(version, few.part.numbers[0], few.part.numbers[-1], few, 0)
        for table, sequence in self._sequences.items():
            kept = _Kept(sequence, stretch, ends)
            if table in self._silent:
                given, images = self._silent.pop(table)
                logged = [kept.rows(number) for number in range(len(self._versions[table]))]
                yield _merged(given, [one for one in logged if one.num_rows], images)
                continue
            for number, version in enumerate(self._versions[table]):
                rows = kept.rows(number)
                if rows.num_rows:
                    told = rows.column(SEQ)
                    yield Changed(version, told[0].as_py(), told[-1].as_py(), kept, number)
        for given, images in self._silent.values():
            yield _merged(given, [], images)


def _merged(table: Table, logged: Sequence[pa.Table], silent: pa.Table) -> Changed:
    merged = _Merged(logged, silent)
    numbers = merged.rows(0).column(SEQ)
    return Changed(table, numbers[0].as_py(), numbers[-1].as_py(), merged, 0)


def chains(changed: Iterable[Changed]) -> list[list[Changed]]:
    """Runs of a table's images, each of which goes on behind the one before. A table that was altered back and forth,
    and rows of XA transactions, come in several."""
    found: list[list[Changed]] = []
    for one in sorted(changed, key=lambda one: one.first):
        mine = (run for run in found if run[-1].table.id == one.table.id and run[-1].last < one.first)
        run = next(mine, None)
        if run is None:
            found.append([one])
        else:
            run.append(one)
    return found


def _version(table: Table, key: tuple[str, ...]) -> Table:
    """A table as the log has it; without a key where that is of columns which come later, by an ALTER ahead."""
    names = {column.name for column in table.columns}
    return Table(table.id, table.columns, key if names.issuperset(key) else ())
