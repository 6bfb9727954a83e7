"""What a place refuses, as an error of the sink."""

from catchment.model.errors import SinkAway, SinkError
from catchment.sink.storage.port import StorageAway


def refused(error: Exception, said: str) -> SinkError:
    """The error that says so; SinkAway where the place does not answer, of which `said` would advise the wrong thing:
    a file that cannot be fetched now is neither gone nor damaged."""
    if isinstance(error, StorageAway):
        return SinkAway(f"{error}; it is tried again")
    return SinkError(said)
