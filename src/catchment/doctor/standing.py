"""What a feed that has begun needs of its shards: the same servers and logs, its positions, and DDL that it can follow.

The doctor looks at what the next run asks at its start, and at the log that this run would read.
"""

import math
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from catchment.config import Feed, SchemaChange, takes
from catchment.doctor.finding import Finding, Severity
from catchment.epoch.chain import must_continue
from catchment.model.epoch import Commit, Manifest, TableShape
from catchment.model.epoch_number import epoch_text, seconds_ahead
from catchment.model.errors import CatchmentError, LogLost, Unsupported
from catchment.model.position import Position
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.model.treatment import Changes
from catchment.readers.checks import judgements, must_keep_keys
from catchment.schema.ddl import Here
from catchment.schema.events import SchemaEvents, tables_here
from catchment.schema.judge import ByText
from catchment.sink.registry.sinks import sink_of
from catchment.source.identity import continued, must_go_on
from catchment.source.log import read_log
from catchment.source.offsets import kept_seconds
from catchment.source.session import connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.state.carried import leaving, must_name_shards
from catchment.state.database import Database
from catchment.state.resume import Continue, decide
from catchment.state.store import Store
from catchment.state.treatments import must_keep_treatments

LOOK_SECONDS = 20.0
AHEAD_SECONDS_MAX = 2.0  # clocks of two machines may differ by as much
_SHARDS_AT_ONCE = 16
# A purge is near when less than this part of the retention is left, as a run warns of it.
_NEAR = 4
_ENDS = "the run ends before the epoch that holds it"
_COPIES = "readers see the table as of the epoch before, until it is copied again"
_LOST = (
    "the next run begins the shard again, and readers see its tables as of now until they are copied again"
)
_STANDS = "readers see the table as of the epoch before"


def check_clock(standing: Manifest, now_us: int) -> list[Finding]:
    """Whether the number of the newest epoch is ahead of this machine's clock (microseconds since 1970)."""
    ahead = seconds_ahead(standing.epoch, now_us)
    if ahead <= AHEAD_SECONDS_MAX:
        return []
    found = f"the newest epoch, {epoch_text(standing.epoch)}, has a number {ahead:,.0f} s ahead of this machine's clock"
    effect = f"a clock was ahead: for {ahead:,.0f} s numbers go on one by one, and do not tell times"
    return [
        Finding(Severity.WARNING, "", found, effect, "synchronise the clocks of machines that run the feed")
    ]


def check_standing(feed: Feed) -> tuple[Manifest | None, list[Finding]]:
    """The epoch from which the next run goes on, None before the first one, and what keeps it from doing so.

    Looks at the state store, the lake and the feed file alone. A state store that cannot be read is no fault here: it
    is check_state's.
    """
    findings = []
    try:
        stored, committed, digests = _stored(feed)
        sink = sink_of(feed)
        lake = sink.newest()
        decision = decide(feed.name, stored, committed, lake, digests)
    except CatchmentError as fault:
        return None, [Finding(Severity.ERROR, "", str(fault))]
    if not isinstance(decision, Continue):
        return None, []
    standing = decision.manifest
    for must_hold in (
        lambda: must_name_shards([shard.name for shard in feed.source.shards], standing),
        lambda: must_keep_treatments(feed, standing),
        lambda: leaving(feed.tables, standing, ()),
        lambda: sink.must_hold(lake) if lake is not None else None,
    ):
        try:
            must_hold()
        except CatchmentError as fault:
            findings.append(Finding(Severity.ERROR, "", str(fault), "the run does not start"))
    return standing, findings


def check_logs(
    feed: Feed, standing: Manifest, endpoints: Iterable[Endpoint], seconds: float = LOOK_SECONDS
) -> list[Finding]:
    """Whether each shard's log goes on behind the feed's position, and every statement in it that would end a run.

    Each log is read for at most so many seconds. If a statement in it was logged
    as text, it is read to its end.
    """
    mine = [endpoint for endpoint in endpoints if endpoint.shard in standing.cut.shards]
    with ThreadPoolExecutor(_SHARDS_AT_ONCE) as pool:
        found = pool.map(lambda endpoint: _check_log(feed, standing, endpoint, seconds), mine)
        return [finding for findings in found for finding in findings]


def _stored(feed: Feed) -> tuple[Manifest | None, Commit | None, frozenset[str]]:
    try:
        with closing(Database(feed.state.get_secret_value())) as database:
            if not database.is_made():
                return None, None, frozenset()
            database.open(create=False)
            store = Store(database, feed.name)
            _, manifest, commit = store.newest()
            return manifest, commit, store.digests(manifest.epoch) if manifest is not None else frozenset()
    except CatchmentError:
        return None, None, frozenset()


def _check_log(feed: Feed, standing: Manifest, endpoint: Endpoint, seconds: float) -> list[Finding]:
    shard = endpoint.shard
    try:
        position = must_go_on(endpoint, continued(endpoint, standing.cut.shards[shard].position))
        ahead = _look_ahead(endpoint, position, seconds)
    except LogLost as fault:
        return [Finding(Severity.ERROR, shard, str(fault), _LOST)]
    except CatchmentError as fault:
        return [Finding(Severity.ERROR, shard, str(fault), "the feed cannot go on from its position")]
    shapes = [shape for shape in standing.shapes if takes(feed.tables, shape.table)]
    holders = standing.holders
    known = {shape.table: shape for shape in shapes if shard in holders[shape.table]}
    here = tables_here(known, shard)
    events = SchemaEvents(here, here).of(ahead.facts)
    stored = StoredAt(endpoint, position.server, position.at, ahead.at, events)
    changes = feed.changes_for(here)
    found = _stops(shard, here, stored, changes)
    if ahead.whole:
        lost = _lost_keys(endpoint, position, list(known.values()), stored)
        found += [_stopped(shard, str(error), changes.of(table)) for table, error in lost.items()]
    stands = f"the feed stands at epoch {epoch_text(standing.epoch)}, at {position.at} of the log, "
    return [_looked_at(shard, stands, ahead), *_nearly_purged(endpoint, standing, position, ahead), *found]


def _nearly_purged(
    endpoint: Endpoint, standing: Manifest, position: Position, ahead: Stretch
) -> list[Finding]:
    """That a purge by age is near, where there is log to read. A file goes when its last write is older than the limit,
    and that which is written last never goes. So nothing is near where the feed stands at the end."""
    with connect(endpoint, position.server) as session:
        kept = kept_seconds(session)
    read_at = standing.absent.get(endpoint.shard, standing.time_us) / 1_000_000
    left = math.inf if kept is None else kept - (time.time() - read_at)
    if kept is None or left >= kept / _NEAR or ahead.at == position.at:
        return []
    when = f"in {left:,.0f} s" if left > 0 else "at any moment"
    return [
        Finding(
            Severity.ERROR,
            endpoint.shard,
            f"the server keeps its log for {kept:,.0f} s, and what the feed needs of it may be purged {when}",
            "the tables of the shard then stand still, until all their rows are copied again",
            "run the feed now until it has caught up, or SET GLOBAL binlog_expire_logs_seconds (or expire_logs_days) "
            "to more until it has",
        )
    ]


def _looked_at(shard: str, stands: str, ahead: Stretch) -> Finding:
    read = f"{ahead.read_bytes / 2**20:,.1f} MiB"
    if ahead.whole:
        return Finding(Severity.OK, shard, f"{stands}{read} before its end")
    return Finding(
        Severity.WARNING,
        shard,
        f"{stands}and its end is far: only {read}, up to {ahead.at}, were looked at for statements that end a run",
        "a later statement may end the run",
        "let the feed catch up, then ask again",
    )


def _look_ahead(endpoint: Endpoint, position: Position, seconds: float) -> Stretch:
    """What lies behind a position, as far as it is read in so many seconds."""
    deadline = time.monotonic() + seconds
    with read_log(endpoint, position.server, position, None, Wanted()) as log:
        for _ in log:
            if time.monotonic() >= deadline:
                break
    stretch = log.stretch
    born = stretch.files[0].born if stretch.files else 0
    must_continue(endpoint.shard, position, born, stretch.first)
    return stretch


def _stops(shard: str, here: Here, stored: StoredAt, changes: Changes) -> list[Finding]:
    """What statements end a run or stop a table, in the order of the log. A statement has one for each table."""

    def evolves(table: TableId) -> bool:
        return changes.of(table) is SchemaChange.EVOLVE

    facts = [event.fact for event, _ in judgements(shard, here, stored, stored.events, evolves)]
    found: dict[str, tuple[int, Finding]] = {}
    for table, columns in here.items():
        events = SchemaEvents([table], {table: columns}).of(facts)
        for event, error in judgements(shard, [table], stored, events, evolves):
            if isinstance(error, Unsupported):  # one that names no table is the same for all of them
                by_text = isinstance(stored.judged(event, [table]), ByText)
                finding = (
                    Finding(Severity.ERROR, shard, str(error), _ENDS)
                    if by_text
                    else _stopped(shard, str(error), changes.of(table))
                )
                found.setdefault(str(error), (facts.index(event.fact), finding))
    return [finding for _, finding in sorted(found.values(), key=lambda one: one[0])]


def _stopped(shard: str, said: str, changes: SchemaChange) -> Finding:
    """What DDL on a table means that is not followed."""
    if changes is SchemaChange.FAIL:
        return Finding(Severity.ERROR, shard, said, _ENDS)
    return Finding(Severity.WARNING, shard, said, _COPIES if changes is SchemaChange.EVOLVE else _STANDS)


def _lost_keys(
    endpoint: Endpoint, position: Position, shapes: Iterable[TableShape], stored: StoredAt
) -> dict[TableId, Unsupported]:
    """The tables of which an index was dropped by which the lake tells their rows apart."""
    found = {}
    for shape in shapes:
        try:
            must_keep_keys(endpoint, position.server, [shape], stored.events, stored.at)
        except Unsupported as error:
            found[shape.table] = error
    return found
