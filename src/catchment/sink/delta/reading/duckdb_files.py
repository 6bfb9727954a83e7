"""Objects of a store as files that DuckDB reads, by the same library and the same credentials as the rest."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from catchment.model.extras import needing
from catchment.model.location import ObjectPath, location
from catchment.sink.storage.choice import storage_of

if TYPE_CHECKING:
    import duckdb


def let_read(connection: "duckdb.DuckDBPyConnection", paths: Iterable[str]) -> None:
    """Let a connection read these files, where they are objects. A file system that it has for them stays. Raises
    NotInstalled."""
    places = (location(path) for path in paths)
    asked = {place.store.partition(":")[0]: place for place in places if isinstance(place, ObjectPath)}
    if not asked:
        return  # DuckDB would import fsspec to say which file systems it has
    for scheme in asked.keys() - set(connection.list_filesystems()):
        with needing(f"{scheme}:// in DuckDB", "objects"):
            from obstore.fsspec import FsspecStore
        allows = storage_of(asked[scheme]).options().get("allow_http") == "true"
        known: Any = scheme  # one of SCHEMES
        connection.register_filesystem(FsspecStore(known, client_options={"allow_http": allows}))
