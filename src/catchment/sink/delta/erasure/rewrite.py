"""Files of a plain table written once more without some rows, to be put in their place in one commit.

A file is written on one version and may be committed on a newer one. Rows that died meanwhile are dead in the new
file, too. So settles of a running feed do not keep an erasure from its end.
"""

import uuid
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from catchment import world
from catchment.model.epoch import TableShape
from catchment.model.location import Location
from catchment.sink.delta.erasure.sought import Held
from catchment.sink.delta.files import delete, write_parquet
from catchment.sink.delta.layout import CHANGE_TYPE
from catchment.sink.delta.log.actions import Action, Add, Cdc
from catchment.sink.delta.log.delta_log import LakeFile, Snapshot
from catchment.sink.delta.log.schemas import arrow_of
from catchment.sink.delta.plain.change_data import DIRECTORY
from catchment.sink.delta.plain.described import described, with_dead
from catchment.sink.delta.plain.rows import rows_of
from catchment.sink.delta.plain.shape import tells_changes
from catchment.sink.delta.plain.vectors import VectorFile, load


class Rewritten(msgspec.Struct, frozen=True):
    """A file that is to take another one's place, of so many rows. `moved`: its row for each row of the other, -1 for
    those that it does not have. `add`: None where no row is left."""

    add: Add | None
    rows: int
    moved: npt.NDArray[np.int64]


class Rewriting:
    """The files of one table that are written again, each once."""

    def __init__(self, directory: Location, shape: TableShape) -> None:
        self._directory, self._shape = directory, shape
        self._done: dict[str, Rewritten] = {}

    def replacing(self, on: Snapshot, held: Mapping[str, Held], *, data_change: bool) -> list[Action]:
        """What puts others in the place of files of a version, without the rows that are held, by path. `data_change`:
        rows that live go with them. Raises SinkError."""
        # The version's own schema: a settle beside us may know columns that the shape does not have yet.
        schema = arrow_of(on.metadata.schema_string)
        for path in held.keys() - self._done.keys():
            self._done[path] = self._rewritten(on.files[path], held[path], schema)
        now_ms = world.now_us() // 1000
        vectors, actions = VectorFile(self._directory, on.metadata.configuration), list[Action]()
        for path in held:
            file, made = on.files[path], self._done[path]
            actions.append(file.removed(now_ms, data_change=data_change))
            if made.add is None:
                continue
            dead = np.asarray(load(self._directory, file.dead).to_array(), np.int64)
            places = made.moved[dead]
            died = BitMap(places[places >= 0].astype(np.uint32))
            if len(died) < made.rows:
                add = with_dead(made.add, made.rows, died, vectors)
                actions.append(msgspec.structs.replace(add, data_change=data_change))
        vectors.write()
        return actions

    def forget_others(self, paths: Iterable[str]) -> None:
        """What was committed took the place of these; files for others are deleted: somebody else replaced those."""
        for path in self._done.keys() - set(paths):
            made = self._done.pop(path)
            if made.add is not None:
                delete(self._directory / made.add.file)
        self._done = {}

    def untold(self, on: Snapshot) -> list[Cdc]:
        """Change data that tells nothing, where the table has change data. Without it readers would take the rows of
        new files for inserts, and look for files that are gone."""
        if not tells_changes(on.metadata):
            return []
        schema = arrow_of(on.metadata.schema_string).append(pa.field(CHANGE_TYPE, pa.string()))
        path = f"{DIRECTORY}/cdc-erasure-{uuid.uuid4().hex}.parquet"
        file = write_parquet(self._directory / path, [schema.empty_table()], schema)
        return [Cdc(path, file.size)]

    def _rewritten(self, file: LakeFile, held: Held, schema: pa.Schema) -> Rewritten:
        """The rows of a file that live, but for those that are held, in a new file."""
        left = BitMap(range(file.rows)) - load(self._directory, file.dead) - held.positions
        lives = np.zeros(file.rows, np.bool_)
        lives[np.asarray(left.to_array(), np.int64)] = True
        moved = np.where(lives, np.cumsum(lives) - 1, -1)
        if not left:
            return Rewritten(None, 0, moved)
        target = self._directory / f"erasure-{uuid.uuid4().hex}.parquet"
        written = write_parquet(target, rows_of(self._directory / file.path, left, schema), schema)
        add = described(written, self._shape, world.now_us() // 1000)
        add = msgspec.structs.replace(add, partition_values=file.add.partition_values)
        return Rewritten(add, written.footer.num_rows, moved)
