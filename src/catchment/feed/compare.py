"""`catchment verify` as a program calls it: compare what is chosen, and have mended what differs."""

import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from catchment import world
from catchment.api.epochs import committed
from catchment.api.moment import At
from catchment.config import Feed, load
from catchment.engine.choice import engine_of, prepared
from catchment.engine.port import Engine
from catchment.feed.repair import Repair, Repairer
from catchment.feed.runner import usual_ports
from catchment.feed.verdict import Verdict
from catchment.feed.verify import verify as compare
from catchment.feed.verify_progress import Progress
from catchment.feed.verify_report import VerifyReport, report_of
from catchment.model.choice import Choice, Portion, Since
from catchment.model.errors import ConfigError
from catchment.model.sample import EVERYTHING, Sample
from catchment.model.table import TableId
from catchment.state.verifications import verifications

# What a comparison needs of the secrets of a feed file.
NEEDED = ("password", "state", "mask_key", "http")
_SEEDS = 1 << 32


@dataclass(frozen=True)
class Comparing:
    """A comparison of what is chosen, and the engine that makes it."""

    feed: Feed
    choice: Choice
    engine: Engine

    def compared(
        self, observe: Callable[[Verdict], None] = lambda verdict: None, *, again: bool = False
    ) -> Verdict:
        """What is found. `again`: from the start, also where one that was interrupted could go on. Raises what `verify`
        raises."""
        endpoints = {endpoint.shard: endpoint for endpoint in self.feed.endpoints()}
        with verifications(self.feed.state.get_secret_value(), self.feed.name) as kept:
            # What changed grows with each epoch, so there is nothing to go on with.
            progress = Progress(None if self.choice.since else kept, again=again)
            verdict = compare(self.feed, endpoints, self.engine, self.choice, observe, progress)
            progress.completed()
        return verdict

    def mended(
        self,
        verdict: Verdict,
        stop: world.Event,
        observe: Callable[[int, int], None] = lambda answered, of: None,
    ) -> Repair:
        """Have what differs mended. `stop` ends the wait for that; the orders stay."""
        return Repairer(self.feed, self.engine, usual_ports(), stop, observe).mend(verdict)


@contextmanager
def comparing(feed: Feed, choice: Choice) -> Iterator[Comparing]:
    """Compare within the block. Begin it before the process has threads."""
    with closing(engine_of(feed, "verify", prepared(feed))) as engine:
        yield Comparing(feed, choice, engine)


def verify(
    feed: Feed | str | Path,
    tables: Collection[str | TableId] = (),
    *,
    portion: Portion | None = None,
    sample: float | None = None,
    seed: int | None = None,
    since: At | None = None,
    repair: bool = False,
) -> VerifyReport:
    """Compare source and lake, both as of an epoch: all tables or some, or a part of them. That is so many percent of
    their chunks, a portion of one table, or what changed behind an epoch. With `repair` what differs is mended, by the
    run of the feed or by this call where there is none.

    `since`: an epoch, or a time, which means the newest epoch at or before it. A portion beside it is one shard's.

    Raises ConfigError for what the feed does not have, StateError when it never ran. Raises SourceError when a shard
    cannot be read to the end.
    """
    known = feed if isinstance(feed, Feed) else load(feed, secrets=NEEDED)
    choice = choice_of(tables, portion, sample_of(sample, seed))
    if since is not None:
        choice = choice_since(known, since, choice)
    with comparing(known, choice) as one:
        verdict = one.compared()
        mended = one.mended(verdict, world.event()) if repair and verdict.differences else None
    return report_of(verdict, choice, mended)


def choice_of(
    tables: Collection[str | TableId], portion: Portion | None = None, sample: Sample = EVERYTHING
) -> Choice:
    """What is compared. Raises ConfigError for what is no table, and for a portion beside tables."""
    try:
        chosen = tuple(one if isinstance(one, TableId) else TableId.parse(one) for one in tables)
    except ValueError as fault:
        raise ConfigError(f"tables: {fault}") from None
    if portion is None:
        return Choice(chosen, sample)
    if set(chosen) - {portion.table}:
        raise ConfigError(f"a portion is of one table, {portion.table}; compare others by themselves")
    return Choice((portion.table,), sample, portion)


def choice_since(feed: Feed, since: At, choice: Choice, shard: str = "") -> Choice:
    """Of a choice what changed behind an epoch, on all shards or one. Raises ConfigError for what is no epoch, for one
    that the lake does not have, and for what cannot be chosen beside it."""
    portion = choice.portion
    if choice.sample != EVERYTHING:
        raise ConfigError("since: all that changed is compared; leave the sample out")
    if portion is not None and (portion.first or portion.last or portion.where):
        raise ConfigError("since: the keys that changed are compared; leave out which keys, or which rows")
    shard = shard if portion is None else portion.shard
    try:
        found = committed(feed, at=since, tables=choice.tables).row
    except ConfigError as fault:
        raise ConfigError(f"since: {str(fault).removeprefix('at: ')}") from None
    if shard and shard not in found.manifest.cut.shards:
        raise ConfigError(f"shard {shard}: the feed has no such shard")
    return replace(choice, portion=None, since=Since(found.commit.epoch, shard))


def sample_of(percent: float | None, seed: int | None) -> Sample:
    """A sample of all chunks; everything without `percent`. Raises ConfigError for a seed of nothing."""
    if percent is None:
        if seed is not None:
            raise ConfigError("--seed: it chooses a sample; say how large it is with --sample")
        return EVERYTHING
    return Sample(percent, secrets.randbelow(_SEEDS) if seed is None else seed)
