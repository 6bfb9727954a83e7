"""Shards that the source has got since a vgtid was given: a stream without them would be no state of the source.

A vgtid names the shards that were left out on purpose when its stream began. All others that it does not have are new.
"""

from msgspec.structs import replace

from catchment.model.cut import Cut
from catchment.model.errors import ConfigError
from catchment.serve.stream.begin import first_cut
from catchment.serve.stream.flags import AddedShards
from catchment.serve.stream.source import Source
from catchment.serve.stream.tables import Chosen
from catchment.serve.stream.vgtid import Start, Starts, StreamCut
from catchment.source.origin import must_be_apart


def added_since(stands: StreamCut, source: Source) -> list[str]:
    """The shards of the source, as `keyspace/shard`, that came since."""
    return sorted(_others(stands, source) - set(stands.left_out))


def with_added(
    stands: StreamCut, source: Source, chosen: Chosen, choice: AddedShards
) -> tuple[StreamCut, list[str]]:
    """Where a stream goes on that was given this cut, and the shards that begin there with a copy.

    Raises ConfigError where shards were added and the client has not chosen what becomes of them; what `first_cut`
    raises for those that begin.
    """
    added = added_since(stands, source)
    if added and choice is AddedShards.REFUSE:
        raise ConfigError(
            f"vgtid: it stands for {', '.join(sorted(stands.cut.shards))}, and the source has got "
            f"{', '.join(added)} since: with flags.added_shards: copy the stream gives their rows, too, and with "
            "ignore it goes on without them"
        )
    if added and choice is AddedShards.COPY:
        return _beside(
            stands, first_cut(Starts(dict.fromkeys(added, Start())), source.endpoints, chosen)
        ), added
    return without_others(stands, source), []


def without_others(stands: StreamCut, source: Source) -> StreamCut:
    """The cut of a stream that leaves out, on purpose, all shards that it does not have."""
    return replace(stands, left_out=tuple(sorted(_others(stands, source))))


def _others(stands: StreamCut, source: Source) -> set[str]:
    return source.endpoints.keys() - stands.cut.shards.keys()


def _beside(stands: StreamCut, begun: StreamCut) -> StreamCut:
    shards = {**stands.cut.shards, **begun.cut.shards}
    must_be_apart({shard: state.position for shard, state in shards.items()})
    number = max(stands.cut.epoch + 1, begun.cut.epoch)
    return replace(stands, cut=Cut(number, max(stands.cut.time_us, begun.cut.time_us), shards))
