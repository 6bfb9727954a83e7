"""How a runner commits to a table of its lake: it checks, lists and commits from one version, or tries again."""

import uuid
from collections.abc import Callable
from typing import NoReturn, TypeVar

import msgspec
import pyarrow as pa

from catchment import world
from catchment.model.errors import NEW_FEED, SinkConflict, SinkError
from catchment.model.location import Location
from catchment.sink.delta.files import make_directory
from catchment.sink.delta.layout import fence_app
from catchment.sink.delta.log.actions import Action, MetaData, Txn, commit_info
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.properties import CONFIGURATION, marked, marks
from catchment.sink.delta.log.schemas import protocol_of, schema_text

_Result = TypeVar("_Result")
_ATTEMPTS = 50


def commit(
    log: DeltaLog, attempt: Callable[[Snapshot], _Result | None], create: Callable[[], object]
) -> _Result:
    """Let `attempt` check, list and commit on the newest version until it returns a result; None: another commit came
    first. `create` makes a table that is not there.

    Raises SinkConflict when others won every attempt, SinkError when the lake refuses.
    """
    for number in range(_ATTEMPTS):
        on = log.newest()
        if on is None:
            create()
            continue
        result = attempt(on)
        if result is not None:
            return result
        world.sleep(0.002 * number)
    raise SinkConflict(f"{log.directory}: others won all {_ATTEMPTS} attempts to commit; try again")


def create_table(log: DeltaLog, schema: pa.Schema, partition_by: list[str], feed: str | None = None) -> None:
    """Create the table, `feed`'s if given, unless another one does at the same time. Raises SinkError."""
    now_ms = world.now_us() // 1000
    make_directory(log.directory / "_delta_log")
    metadata = MetaData(
        str(uuid.uuid4()), schema_text(schema), now_ms, CONFIGURATION | marks(feed), partition_by
    )
    log.put(None, commit_info("CREATE TABLE", now_ms), [protocol_of(schema), metadata])


def fenced(feed: str, fence: int) -> Txn:
    """What each commit of a runner carries: from then on no earlier one commits."""
    return Txn(fence_app(feed), fence, world.now_us() // 1000)


def remarked(on: Snapshot) -> list[Action]:
    """The metadata of a table of an earlier layout, marked with today's; nothing for others."""
    configuration = marked(on.metadata.configuration)
    if configuration is None:
        return []
    return [msgspec.structs.replace(on.metadata, configuration=configuration)]


def gone(name: str, directory: Location) -> NoReturn:
    """Raises SinkError for a table that was there before."""
    raise SinkError(f"{name}: the lake table at {directory} is gone; put it back, or start {NEW_FEED}")
