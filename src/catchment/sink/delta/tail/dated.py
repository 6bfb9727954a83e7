"""Which epochs the files of a tail are of, as its log tells it."""

from catchment.model.errors import SinkError
from catchment.model.location import Location
from catchment.sink.delta.layout import EPOCH
from catchment.sink.delta.log.delta_log import LakeFile, Snapshot


def with_epochs(directory: Location, tail: Snapshot) -> list[tuple[int, LakeFile]]:
    """The files of a tail, each with its newest epoch. Raises SinkError where the log does not tell that."""
    found = []
    for file in tail.files.values():
        epoch = file.bounds().max_values.get(EPOCH)
        if not isinstance(epoch, int):
            raise SinkError(
                f"{directory}: the log does not tell the epochs of {file.path}: was it written by another "
                "program? put back a copy of the lake"
            )
        found.append((epoch, file))
    return found
