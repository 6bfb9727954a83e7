"""What a place refuses, as an error of the sink."""

from catchment.model.errors import SinkAway, SinkError
from catchment.sink.storage.port import StorageAway


def refused(error: Exception, said: str) -> SinkError:
    """The error that says so. Where the place does not answer, or lets nobody in, `said` would advise the wrong thing:
    a file that cannot be fetched is neither gone nor damaged. It is SinkAway where the place does not answer."""
    if isinstance(error, StorageAway):
        return SinkAway(f"{error}; it is tried again")
    if isinstance(error, PermissionError):
        return SinkError(
            f"no access to the lake: {error}; give this user the right to read and write there, or for an object store "
            "its credentials (docs/object-stores.md)"
        )
    return SinkError(said)
