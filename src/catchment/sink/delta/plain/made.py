"""Files and actions of one settle: what the changes of some epochs make of a version of a plain table."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import msgspec
import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from catchment.model.emptied import Emptied
from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.model.treatment import Mode
from catchment.sink.delta.conform import conform
from catchment.sink.delta.files import delete, lake_parquet, write_parquet, written
from catchment.sink.delta.layout import identity_columns
from catchment.sink.delta.log.actions import Action, Add
from catchment.sink.delta.log.delta_log import LakeFile, Snapshot
from catchment.sink.delta.plain.amended import (
    Amended,
    amended_in,
    as_told,
    is_narrower,
    not_written,
    rows_to_write,
    schema_read,
)
from catchment.sink.delta.plain.arranged import Piece, cluster_columns, one_partition, pieces, pieces_of
from catchment.sink.delta.plain.change_data import ChangeData
from catchment.sink.delta.plain.deleted import with_deleted
from catchment.sink.delta.plain.described import described, with_dead
from catchment.sink.delta.plain.emptied import Gone, living, not_taken, rows_taken
from catchment.sink.delta.plain.index import Index
from catchment.sink.delta.plain.net import NetChanges
from catchment.sink.delta.plain.parallel import each
from catchment.sink.delta.plain.renewed import OldCopy, Renewing, differing
from catchment.sink.delta.plain.rows import rows_of
from catchment.sink.delta.plain.shape import Form, plain_schema, properties_of
from catchment.sink.delta.plain.tail import Limits, Waiting
from catchment.sink.delta.plain.touched import Changed
from catchment.sink.delta.plain.vectors import VectorFile, load
from catchment.sink.delta.plain.versions_of_rows import RowVersions, may_be_open, open_rows, with_times
from catchment.sink.storage.choice import storage_of
from catchment.sink.storage.refused import refused

Dead = dict[str, BitMap]
_AFTER_ALL = (1 << 63) - 1  # no epoch is as late


class Making(msgspec.Struct, frozen=True):
    """What a settle makes: the table of these directories, of that shape and form, with that index, at an epoch."""

    plain: Location
    tail: Location
    shape: TableShape
    epoch: int
    form: Form
    index: Index


class Made:
    """Files and actions of one settle. `changes`: how many came; `died`: rows that it kills."""

    def __init__(self, making: Making, now_ms: int) -> None:
        self.actions: list[Action] = []
        self.changes = self.died = 0
        self._plain, self._tail, self._shape = making.plain, making.tail, making.shape
        self._epoch, self._form, self._index = making.epoch, making.form, making.index
        self._schema = self._read = plain_schema(making.shape)
        self._amended = amended_in(making.shape)
        self._gone: Gone = ()
        self._now_ms = now_ms
        self._vectors = VectorFile(making.plain, properties_of(making.form))
        self._moved: dict[str, int] = {}
        self._told = ChangeData(making.plain, making.shape, making.epoch) if making.form.changes else None
        self._brought: list[Location] = []

    def take(self, on: Snapshot | None, found: Waiting | None, instead_of: tuple[str, ...] = ()) -> None:
        """Kill what the changes replace, in files of the table and in new chunks, and bring what lives. `instead_of`:
        shards of which all rows that the table has go first."""
        stale = self._not_written(on)
        self._gone = not_taken(self._shape.emptied, None if on is None else on.metadata)
        files = tuple(on.files.values()) if on is not None else ()
        self._counts = {file.path: file.rows for file in files}
        linked = found.chunks if found is not None and self._shape.mode is not Mode.HISTORY else ()
        chunks = [chunk for path in linked for chunk in self._chunk(path)]
        before = {file.path: load(self._plain, file.dead) for file in files}
        dead = {path: rows.copy() for path, rows in before.items()}
        fresh = {add.file: BitMap() for add, _ in chunks}
        if instead_of:
            self._empty(files, dead, (Emptied(instead_of, _AFTER_ALL),))
        if self._shape.mode is Mode.APPEND:
            self._append(found)
            self._amend(dead, stale.types_alone)
        elif self._shape.mode is Mode.HISTORY:
            self._keep_versions(found, files, dead, stale)
        else:
            keeps = self._shape.mode is Mode.SOFT_DELETE
            for net in found.nets(with_lost=keeps) if found is not None else ():
                self._apply(net, files, dead, fresh)
            self._empty(files, dead, self._gone)
            self._amend(dead, stale)
        for add, rows in chunks:
            fresh[add.file] |= rows_taken(
                self._plain / add.file, rows, LakeFile(add, rows).bounds(), self._gone
            )
        died = {path: rows.copy() for path, rows in fresh.items()}
        appends = self._shape.mode is Mode.APPEND
        self._amend_chunks(fresh, self._amended.types_alone if appends else self._amended)
        if self._told is not None and (self._told.actions or any(fresh.values())):
            self._tell_chunks(self._told, chunks, died)
        for file in files:
            self._replace(file, before[file.path], dead[file.path])
        for add, rows in chunks:
            self._add(add, rows, fresh[add.file], data_change=True)
            self.died += len(fresh[add.file])
        self._vectors.write()
        if self._told is not None:
            self.actions += self._told.actions

    def renew(self, on: Snapshot, found: Waiting | None, limits: Limits) -> None:
        """Bring the table, which keeps its past, to a new copy that is `found`: only what differs ends or begins."""
        stale = self._not_written(on)
        files = tuple(on.files.values())
        self._counts = {file.path: file.rows for file in files}
        before = {file.path: load(self._plain, file.dead) for file in files}
        dead = {path: rows.copy() for path, rows in before.items()}
        versions = self._shape.mode is Mode.HISTORY
        asked = tuple(file for file in files if not versions or may_be_open(file))
        old = OldCopy(self._plain, asked, before, self._read)
        new = Renewing(self._shape, self._epoch, self._amended, self._schema)
        for share in differing(new, old, found, limits):
            for path, rows in share.dying.items():
                dead[path] |= rows
            self.changes += sum(rows.num_rows for rows in share.brought)
            if self._told is not None:
                self._told.changed(iter(share.died), pa.concat_tables(share.brought))
            for rows in share.brought:
                self._bring_held(rows)
        self._amend(dead, stale.types_alone if self._shape.mode is Mode.APPEND else stale)
        for file in files:
            self._replace(file, before[file.path], dead[file.path])
        self._vectors.write()
        if self._told is not None:
            self.actions += self._told.actions

    def replace_all(self, on: Snapshot) -> None:
        """Take all files of a version out of the table."""
        for file in on.files.values():
            self.actions.append(file.removed(self._now_ms, data_change=True))
            self.died += file.live
            if self._told is not None:
                # Of removed files with a vector delta-rs 1.6 tells nothing, so the commit says it.
                lives = BitMap(range(file.rows)) - load(self._plain, file.dead)
                self._told.deleted(rows_of(self._plain / file.path, lives, self._schema, retype=True))

    def discard(self) -> None:
        """Delete the rows that were written: nobody commits them, and they may be erased meanwhile. Chunks stay, since
        another settle may have committed the same link."""
        told = [self._plain / action.path for action in self._told.actions] if self._told is not None else []
        for path in [*self._brought, *told]:
            delete(path)

    def _not_written(self, on: Snapshot | None) -> Amended:
        """What the table's files do not have of what rows have and no log has brought."""
        stale = self._amended if on is None else not_written(self._amended, on.metadata)
        # What columns came with is told once: the table's files may not have any more where it came from.
        self._amended = msgspec.structs.replace(self._amended, fills=stale.fills, lent=stale.lent)
        self._read = schema_read(self._schema, self._amended)
        return stale

    def _apply(self, net: NetChanges, files: Iterable[LakeFile], dead: Dead, fresh: Dead) -> None:
        """Kill what net changes replace, and bring what lives of them."""
        self.changes += net.keys.num_rows
        changed = Changed(net.keys)
        alive = (file for file in files if len(dead[file.path]) < file.rows)
        touched = [file for file in alive if changed.may_touch(file)]
        hit = each(partial(self._index.rows, changed), touched)
        dying = {file.path: rows - dead[file.path] for file, rows in zip(touched, hit, strict=True)}
        for path, rows in dying.items():
            dead[path] |= rows
        in_chunks = each(lambda path: changed.rows(self._plain / path), [*fresh])
        new = {path: rows - fresh[path] for path, rows in zip(fresh, in_chunks, strict=True)}
        for path, rows in new.items():
            fresh[path] |= rows
        comes = as_told(living(conform(net.comes, self._read), self._gone), self._amended)
        if net.lost is not None:
            # Their epochs are to be those of the deletes.
            had = as_told(conform(net.lost.rows, self._read), self._amended)
            ended = (part for path, rows in {**dying, **new}.items() for part in self._rows(path, rows))
            told = (as_told(part, self._amended) for part in ended)
            lost = msgspec.structs.replace(net.lost, rows=had)
            comes = with_deleted(lost, told, comes, identity_columns(self._shape))
        if self._told is not None:
            died = (part for path, rows in dying.items() for part in self._rows(path, rows))
            self._told.changed(died, comes)
        self._bring_held(comes)

    def _append(self, found: Waiting | None) -> None:
        """Bring all changes of all epochs."""
        if found is None or not found.changes:
            return
        rows = [conform(part, self._read) for part in found.rows()]
        self.changes += sum(part.num_rows for part in rows)
        self._bring(rows)

    def _keep_versions(
        self, found: Waiting | None, files: Iterable[LakeFile], dead: Dead, stale: Amended
    ) -> None:
        """Bring the versions that changes and chunks begin, and once more those that they end."""
        identity, shares = identity_columns(self._shape), []
        for changes in found.whole_shares() if found is not None else ():
            self.changes += changes.num_rows
            versions = RowVersions(changes, identity, self._read)
            shares.append(versions)
            changed = Changed(versions.keys)
            asked = [file for file in files if may_be_open(file) and changed.may_touch(file)]
            hit = each(partial(self._index.rows, changed), asked)
            dying = {
                file.path: open_rows(self._plain / file.path, rows - dead[file.path])
                for file, rows in zip(asked, hit, strict=True)
            }
            died = [part for path, rows in dying.items() for part in self._rows(path, rows)]
            for path, rows in dying.items():
                dead[path] |= rows
            ended = [with_times(part, versions.ends_of(part), self._read) for part in died]
            ended = [part for part in (versions.ended, *ended) if part.num_rows]
            if self._told is not None:
                comes = pa.concat_tables([versions.open, *ended])
                self._told.changed(iter(died), as_told(comes, self._amended))
            # Apart from those that last: files of ended ones alone are never asked again.
            if ended:
                self._bring(ended)
            if versions.open.num_rows:
                self._bring([versions.open])
        self._amend(dead, stale)
        chunks = found.chunks if found is not None else ()
        for path in chunks:
            self._bring(self._copied_versions(path, shares))
        # Of a commit with change data readers take that alone.
        if self._told is not None and self._told.actions:
            for path in chunks:
                copied = self._copied_versions(path, shares)
                self._told.inserted(as_told(part, self._amended) for part in copied)

    def _copied_versions(self, path: str, shares: Sequence[RowVersions]) -> Iterator[pa.Table]:
        """The rows of a chunk as versions, some of which have ended since."""
        with lake_parquet(self._tail / path) as file:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                ends = np.full(rows.num_rows, -1, np.int64)
                for share in shares:
                    ends = np.maximum(ends, share.ends_of(rows))
                yield with_times(rows, ends, self._read)

    def _rows(self, path: str, rows: BitMap) -> Iterable[pa.Table]:
        return rows_of(self._plain / path, rows, self._read) if rows else ()

    def _empty(self, files: Iterable[LakeFile], dead: Dead, gone: Gone) -> None:
        """Rows of the table's files that a TRUNCATE took die, but for those that changes have replaced."""
        for file in files:
            taken = rows_taken(self._plain / file.path, file.rows, file.bounds(), gone) - dead[file.path]
            if taken:
                if self._told is not None:
                    self._told.deleted(self._rows(file.path, taken))
                dead[file.path] |= taken

    def _amend(self, dead: Dead, amended: Amended) -> None:
        """Rows of the table's files with other values than the shape says are brought with those, and die."""
        if not amended:
            return
        for path in dead:
            again = rows_to_write(self._plain / path, amended) - dead[path]
            if again:
                if self._told is not None:
                    after = (as_told(part, amended) for part in self._rows(path, again))
                    self._told.replaced(self._rows(path, again), after)
                self._bring(self._rows(path, again))
                dead[path] |= again
            if amended.types and is_narrower(self._plain / path, amended):
                self._move(path, dead)

    def _move(self, path: str, dead: Dead) -> None:
        """Bring all rows of a file that live in another one, which has the table's types. No row changes."""
        rows = BitMap(range(self._counts[path])) - dead[path]
        self._bring(self._rows(path, rows), data_change=False)
        self._moved[path] = len(rows)
        dead[path] |= rows

    def _amend_chunks(self, fresh: Dead, amended: Amended) -> None:
        """The same of new chunks."""
        if not amended:
            return
        for path in fresh:
            again = rows_to_write(self._plain / path, amended, narrower=True) - fresh[path]
            if again:
                self._bring(self._rows(path, again))
                fresh[path] |= again

    def _tell_chunks(self, told: ChangeData, chunks: Iterable[tuple[Add, int]], died: Dead) -> None:
        """Rows of chunks, in words of the change data. Readers take new files for inserts only where a commit has no
        change data. Of one with a vector delta-rs 1.6 tells the dead rows instead."""
        for add, rows in chunks:
            lives = BitMap(range(rows)) - died[add.file]
            told.inserted(as_told(part, self._amended) for part in self._rows(add.file, lives))

    def _replace(self, file: LakeFile, before: BitMap, dead: BitMap) -> None:
        """The file with its dead rows, where more have died, or where no file may have any, or not there."""
        died = len(dead) - len(before) - self._moved.get(file.path, 0)
        self.died += died
        stay = self._form.vectors and not self._vectors.is_elsewhere(file.dead)
        if len(dead) > len(before) or (dead and not stay):
            self.actions.append(file.removed(self._now_ms, data_change=bool(died)))
            self._add(file.add, file.rows, dead, data_change=bool(died))

    def _add(self, add: Add, rows: int, dead: BitMap, *, data_change: bool) -> None:
        """The file with these dead rows, or another without them; nothing when none lives."""
        if len(dead) == rows:
            return
        if dead and not self._form.vectors:
            self._bring(self._rows(add.file, BitMap(range(rows)) - dead), data_change=data_change)
            return
        after = with_dead(add, rows, dead, self._vectors)
        self.actions.append(
            msgspec.structs.replace(after, data_change=data_change, modification_time=self._now_ms)
        )

    def _chunk(self, path: str) -> list[tuple[Add, int]]:
        """A copied chunk as a file of the plain table, or as several where its rows are not arranged as the table's."""
        if not cluster_columns(self._shape) and self._shape.partition_column is None:
            add, rows = self._linked(path)
            values = one_partition(add, self._shape)
            if values is not None:
                return [(msgspec.structs.replace(add, partition_values=values), rows)]
        return [self._file(piece, self._read) for piece in pieces(self._tail_rows(path), self._shape)]

    def _tail_rows(self, path: str) -> Iterator[pa.Table]:
        with lake_parquet(self._tail / path) as file:
            for group in range(file.num_row_groups):
                yield conform(file.read_row_group(group), self._read)

    def _linked(self, path: str) -> tuple[Add, int]:
        """A copied chunk under a name of the plain table: the same file, of which no byte is written again."""
        source = self._tail / path
        target = self._plain / source.name
        try:
            storage_of(source).share(source, target)
        except OSError as error:
            raise refused(
                error, f"cannot link {source} to {target}: {error}; check space and rights there"
            ) from error
        chunk = written(target)
        return described(chunk, self._shape, self._now_ms), chunk.footer.num_rows

    def _bring(self, parts: Iterable[pa.Table], *, data_change: bool = True) -> None:
        """New files of rows that come in order of (shard, key)."""
        rows = (as_told(part, self._amended) for part in parts)
        for piece in pieces(rows, self._shape):
            add, _ = self._file(piece, self._schema)
            self.actions.append(msgspec.structs.replace(add, data_change=data_change))

    def _bring_held(self, rows: pa.Table) -> None:
        """The same of rows that memory holds and that are told, several files at a time."""
        found = each(lambda piece: self._file(piece, self._schema), pieces_of(rows, self._shape))
        self.actions += [add for add, _ in found]

    def _file(self, piece: Piece, schema: pa.Schema) -> tuple[Add, int]:
        """Write a file, arranged as the table asks; what adds it, and how many rows it has."""
        target = self._plain / f"{self._epoch}-{uuid.uuid4().hex[:12]}.parquet"
        self._brought.append(target)
        file = write_parquet(target, piece.rows, schema)
        add = described(file, self._shape, self._now_ms)
        return msgspec.structs.replace(add, partition_values=piece.values), file.footer.num_rows
