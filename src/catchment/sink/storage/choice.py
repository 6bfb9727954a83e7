"""Which storage a place is in."""

from pathlib import Path
from typing import Any

from catchment.model.location import Location
from catchment.sink.storage.local import LocalStorage
from catchment.sink.storage.port import Storage

_LOCAL = LocalStorage()


def storage_of(place: Location) -> Storage[Any]:
    """The storage that a place is in. Raises NotInstalled, OSError for an object store that cannot be used."""
    if isinstance(place, Path):
        return _LOCAL
    from catchment.sink.storage.objects import object_storage

    return object_storage(place.store)
