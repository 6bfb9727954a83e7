"""The rows of a lake table that a comparison asks for. Needs a feed's packages, which reading a lake does not."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from catchment.model.chunk import Chunk, chunk_key
from catchment.model.errors import SinkError
from catchment.rewind.ranges import value_of
from catchment.sink.delta.layout import SHARD
from catchment.sink.delta.reading.duckdb_session import session_over
from catchment.sink.delta.reading.rule import output_schema
from catchment.sink.delta.reading.state import DeltaState
from catchment.sink.reading import double_quoted


@dataclass(frozen=True, slots=True)
class LakeReader:
    """`catchment.epoch.work.Reader` of a table as of one epoch, with the source's names of columns."""

    state: DeltaState

    def rows(self, chunks: Sequence[Chunk]) -> pa.Table:
        """As the port has it. The first column of a bound alone decides."""
        shape = self.state.shape
        key = chunk_key(shape.definition)
        conditions, values = [f"{SHARD} = ?"], [chunks[0].shard]
        if key.ordered:
            first = key.columns[0]
            shown = next(shape.name_of(c) for c in shape.kept if c.column.name == first.name)
            for operator, chosen, bounds in (
                (">=", min, [chunk.lo for chunk in chunks]),
                ("<=", max, [chunk.hi for chunk in chunks]),
            ):
                known = [value_of(first, bound[0]) for bound in bounds if bound is not None]
                if len(known) == len(bounds):
                    conditions.append(f"{double_quoted(shown)} {operator} ?")
                    values.append(chosen(known))
        return self._where(" AND ".join(conditions), values)

    def having(self, shard: str, values: pa.Table) -> pa.Table:
        """As the port has it."""
        shape = self.state.shape
        shown = {c.column.name: shape.name_of(c) for c in shape.kept}
        same = " AND ".join(
            f"held.{double_quoted(shown[name])} = v.{double_quoted(name)}" for name in values.schema.names
        )
        # By the bounds whole row groups are passed over, as the join alone may not do.
        first = values.schema.names[0]
        bounds = pc.min_max(values[first])
        near = f"held.{double_quoted(shown[first])} BETWEEN ? AND ?"
        rows = self._where(
            f"{SHARD} = ? AND {near} AND EXISTS (SELECT 1 FROM asked AS v WHERE {same})",
            [shard, bounds["min"].as_py(), bounds["max"].as_py()],
            values,
        )
        return rows.select([c.column.name for c in shape.kept])

    def elsewhere(self, shards: Sequence[str]) -> dict[str | None, pa.Table]:
        """As the port has it."""
        listed = ", ".join("?" for _ in shards)
        rows = self._where(f"{SHARD} IS NULL OR {SHARD} NOT IN ({listed})", shards)
        names = rows[SHARD].unique().to_pylist()
        return {
            name: rows.filter(pc.is_null(rows[SHARD]) if name is None else pc.equal(rows[SHARD], name))
            for name in names
        }

    def _where(self, condition: str, values: Sequence[object], asked: pa.Table | None = None) -> pa.Table:
        """`asked`: what the condition knows under that name. It knows the lake's rows as `held`: a name without that is
        one of `asked` first."""
        state = self.state
        with session_over(state.files, threads=1) as connection:
            if asked is not None:
                connection.register("asked", asked)
            try:
                query = f"SELECT * FROM ({state.sql()}) AS held WHERE {condition}"
                rows = connection.sql(query, params=values).to_arrow_table()
            except (duckdb.IOException, duckdb.OutOfMemoryException) as error:
                raise SinkError(
                    f"{state.shape.table}: the files of the lake cannot be read: {error}"
                ) from error
        found = rows.cast(output_schema(state.shape, state.origin))
        sources = {state.shape.name_of(c): c.column.name for c in state.shape.kept}
        return found.rename_columns([sources.get(name, name) for name in found.schema.names])
