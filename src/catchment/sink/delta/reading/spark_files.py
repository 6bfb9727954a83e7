"""Parquet files of a lake table as frames of Spark."""

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from catchment.model.location import location
from catchment.sink.delta.files import FileColumns, by_columns
from catchment.sink.delta.layout import PART
from catchment.sink.delta.reading.places import Worn, spark_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_AS_THEY_ARE = FileColumns(frozenset())


class SparkFiles:
    """Frames with the columns of `schema`. Files may have columns in `former` types, by name."""

    def __init__(
        self,
        session: "SparkSession",
        schema: pa.Schema,
        former: Mapping[str, Collection[pa.DataType]],
    ) -> None:
        self._session, self._schema, self._former = session, schema, former

    def none(self) -> "DataFrame":
        """No rows."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return self._session.createDataFrame([], from_arrow_schema(self._schema, prefer_timestamp_ntz=True))

    def rows(self, paths: Sequence[str], *places: "Column") -> "DataFrame":
        """The rows of files, with what Spark tells of their `places`."""
        if not self._former:
            return self._read(paths, _AS_THEY_ARE, places)
        groups = by_columns(paths, self._former).items()
        return reduce(lambda all_, one: all_.unionByName(one), [self._read(p, c, places) for c, p in groups])

    def alive(self, worn: Sequence[Worn]) -> "DataFrame":
        """The rows of worn files that live. Spark names each row's file and place (its `_metadata` column)."""
        from pyspark.sql.functions import broadcast, col, struct

        place = struct(col("_metadata.file_name"), col("_metadata.row_index")).alias(PART)
        rows = self.rows([one.path for one in worn], place)
        dead = [
            {PART: {"file_name": location(one.path).name, "row_index": row}}
            for one in worn
            for row in one.positions()
        ]
        places = self._session.createDataFrame(pa.Table.from_pylist(dead))
        return rows.join(broadcast(places), PART, "left_anti").drop(PART)

    def _read(self, paths: Sequence[str], columns: FileColumns, places: "Sequence[Column]") -> "DataFrame":
        """Of files that have the same columns. Spark 4.1 reads some wider types from narrower ones, and not all."""
        from pyspark.sql.functions import col
        from pyspark.sql.pandas.types import from_arrow_schema

        types = columns.types
        held = pa.schema([f.with_type(types.get(f.name, f.type)) for f in self._schema])
        schema = from_arrow_schema(held, prefer_timestamp_ntz=True)
        # Paths, not patterns: of one with a colon Hadoop's globbing makes a URISyntaxException, however it is escaped.
        files = self._session.read.schema(schema).option("__globPaths__", "false")
        frame = files.parquet(*(spark_path(location(path)) for path in paths))
        if types or places:
            frame = frame.select("*", *places)
        wanted = from_arrow_schema(self._schema, prefer_timestamp_ntz=True)
        for name in types:
            quoted = "`" + name.replace("`", "``") + "`"
            frame = frame.withColumn(name, col(quoted).cast(wanted[name].dataType))
        return frame
