"""Where the rows of a state lie that are not simply all rows of a file."""

import msgspec

from catchment.model.location import Location, ObjectPath, location
from catchment.sink.delta.log.actions import Vector
from catchment.sink.delta.plain.vectors import load

# Hadoop's connectors (hadoop-aws, gcs-connector, hadoop-azure).
_HADOOP = {"s3": "s3a", "gs": "gs", "az": "abfss"}


def spark_path(place: Location) -> str:
    """A place as Hadoop's Path takes it, nothing of it percent-encoded. Directories are the host's, whatever file
    system is the session's own."""
    if not isinstance(place, ObjectPath):
        return f"file://{place}"
    scheme, _, bucket = place.store.partition("://")
    return f"{_HADOOP[scheme]}://{bucket}/{place.key}"


class Worn(msgspec.Struct, frozen=True):
    """A file of a plain table of which some rows are dead; `table` is the table's directory."""

    table: str
    path: str
    dead: Vector

    def positions(self) -> list[int]:
        """Numbers of the dead rows. Raises SinkError."""
        found: list[int] = load(location(self.table), self.dead).to_array().tolist()
        return found


class Tables(msgspec.Struct, frozen=True):
    """Where an engine that knows Delta finds a state: a version of the plain table, and one of the tail, if the state
    needs it. Of that the epochs behind `settled` count."""

    plain: str
    plain_version: int
    tail: str
    tail_version: int | None
    settled: int
