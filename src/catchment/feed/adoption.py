"""Another server for a shard: it is compared with the one that the feed knows, and an epoch without rows names it.

It has the same data and the same log under another name; or it has a log of its own, as a replica that was promoted
has, and the shard's tables are copied again in place (docs/decisions/2026-11-22-adopt.md).
"""

from dataclasses import dataclass

from msgspec import structs

from catchment import world
from catchment.epoch.begun_again import BegunAgain, begun_again
from catchment.feed.moved import Comparison
from catchment.model.epoch import Manifest
from catchment.model.epoch_number import epoch_text
from catchment.model.errors import Diverged
from catchment.model.position import Position, Server
from catchment.model.source import Endpoint
from catchment.source.first_cut import first_position
from catchment.source.origin import must_be_apart
from catchment.source.session import connect


@dataclass(frozen=True, slots=True)
class Adoption:
    """The shard for which another server answers. `copy`: its tables are copied again where the log does not go on
    there."""

    shard: str
    copy: bool


@dataclass(frozen=True, slots=True)
class Adopted:
    """The server that the feed knew and the one that it knows now.

    `compared`: what was found equal in their logs. `differs`: why the log does not go on there, so that the shard's
    tables are copied again; None where it goes on. `epoch`: the one that names the new server; None when nothing was
    written.
    """

    before: Server
    now: Server
    compared: tuple[str, ...]
    differs: str | None
    epoch: int | None

    def line(self, shard: str) -> str:
        """The same in a line, for a run that goes on."""
        if self.now == self.before:
            return f"shard {shard} is on the server that the feed knows, {self.now}; nothing to adopt"
        then = "the log goes on there"
        if self.differs is not None:
            then = f"{self.differs}; the shard's tables are copied again, and are stale until then"
        epoch = "" if self.epoch is None else f" as of epoch {epoch_text(self.epoch)}"
        return f"shard {shard} has {self.now} instead of {self.before}{epoch}: {then}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """The server that answers for a shard now. `position`: where its log goes on; None where `differs` says why it does
    not. `known`: the server before it."""

    shard: str
    known: Server
    server: Server
    compared: tuple[str, ...]
    position: Position | None
    differs: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether it is another server than the feed knows."""
        return self.server != self.known

    def adopted(self, epoch: int | None) -> Adopted:
        """What came of it; `epoch` names the server."""
        return Adopted(self.known, self.server, self.compared, self.differs, epoch)


def candidate(endpoint: Endpoint, standing: Manifest, *, copy: bool) -> Candidate:
    """The server that answers now, compared with the one that the feed knows.

    Raises ConfigError where it is another shard's server. Raises Diverged without `copy`, naming the first thing of its
    log that is not that of the feed's position. Raises SourceError where the server cannot be asked.
    """
    shard, known = endpoint.shard, standing.cut.shards[endpoint.shard].position
    comparison = Comparison(endpoint, known)
    server = comparison.server
    if server == known.server:
        return Candidate(shard, known.server, server, (), known)
    must_be_apart({**standing.cut.positions, shard: structs.replace(known, server=server)})
    try:
        position = comparison.position()
    except Diverged as differs:
        if not copy:
            differs.way_out = (
                f"`catchment adopt FEED.yaml --shard {shard} --copy` goes on with this server and copies the shard's "
                "tables again; nothing was written"
            )
            raise
        return Candidate(shard, known.server, server, tuple(comparison.compared), None, str(differs))
    return Candidate(shard, known.server, server, tuple(comparison.compared), position)


def naming(standing: Manifest, endpoint: Endpoint, found: Candidate, epoch: int) -> Manifest:
    """The epoch that names the new server. Where the log goes on, it ends where `standing` does, and what was sealed on
    the old server is proven again on the new one. Else the shard begins again.

    Raises SourceError where the shard cannot begin on that server.
    """
    shard = endpoint.shard
    if found.position is None:
        with connect(endpoint, found.server, snapshots=True) as session:
            position = first_position(session)
        begun = {
            shard: BegunAgain(position, f"{found.differs}; it was adopted, to be copied again", waits=False)
        }
        return begun_again(standing, begun, epoch, world.now_us())
    after = standing.repeated(epoch)
    state = structs.replace(after.cut.shards[shard], position=found.position, sealed=None)
    return structs.replace(after, cut=structs.replace(after.cut, shards={**after.cut.shards, shard: state}))
