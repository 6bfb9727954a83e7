"""The tails of all copies of a table: of the one that its plain table is made of, and of those before it."""

from catchment.model.location import Location
from catchment.model.table import TableId
from catchment.sink.delta.files import lake_file
from catchment.sink.delta.layout import generation_of, ours_dir, tail_dir
from catchment.sink.storage.choice import storage_of


def tails_of(root: Location, table: TableId) -> dict[int, Location]:
    """Where tails of a table may lie, by generation. Raises SinkError."""
    ours = ours_dir(root)
    with lake_file(ours):
        names = storage_of(ours).directories(ours)
    found = (generation_of(name) for name in sorted(names))
    return {generation: tail_dir(root, table, generation) for generation in found if generation is not None}
