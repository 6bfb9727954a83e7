"""The first cut of a feed: who the shards are, where their logs begin for us, what the tables look like."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec
import pyarrow.compute as pc

from catchment import world
from catchment.epoch.chain import went_backwards
from catchment.epoch.seal import newest_sealed
from catchment.model.chunk import Bound, chunk_key
from catchment.model.definition import Definition
from catchment.model.epoch import Manifest
from catchment.model.errors import CutMissed, NothingVisible, Retry, ServerSaid, Unsupported
from catchment.model.image import SIDE
from catchment.model.position import GtidList, LogOffset, Position
from catchment.model.source import Endpoint
from catchment.model.table import RESERVED, Table, TableId
from catchment.rewind.states import BEFORE
from catchment.schema.ddl import Columns, Stop
from catchment.schema.events import SchemaEvents
from catchment.schema.existence import new_in
from catchment.schema.redeclared import REDEFINED
from catchment.source.bounds import newest_key
from catchment.source.catalog import listed_tables, parted
from catchment.source.declared import Declared, read_declared
from catchment.source.definitions_at import definitions_at, describes_itself
from catchment.source.each_shard import each_shard
from catchment.source.first_position import SEAL_ATTEMPTS, await_no_xa, known_prepared, mysql_position, scan
from catchment.source.foreign_keys import NO_KEYS, declared_keys
from catchment.source.log import read_facts, read_log
from catchment.source.offsets import ask_resets, open_xa, snapshot_offset
from catchment.source.origin import Origin, first_manifest
from catchment.source.session import Session, connect
from catchment.source.stored_at import StoredAt
from catchment.source.stretch import Stretch
from catchment.source.wanted import Wanted
from catchment.wire.cells.types import logged_as_binary
from catchment.wire.log.facts import Images, PartialImage, Unreadable

NEWEST_FILE_ATTEMPTS = 30
_FILE_START = 4
# Of a log: from where, and to where; None for its end.
_Stretch = tuple[LogOffset, LogOffset | None]


def originate(
    feed: str,
    endpoints: Mapping[str, Endpoint],
    chosen: Callable[[TableId], bool],
    after: int,
    reserved: Collection[str] = RESERVED,
) -> Manifest:
    """The manifest of epoch zero, of all tables that are chosen. `reserved`: names that no column may have.

    Raises as `first_manifest`, Unsupported for a table that cannot be carried, and SourceError.
    """
    origins = each_shard(endpoints, lambda shard: origin_of(endpoints[shard], chosen, reserved))
    return first_manifest(feed, origins, after)


def origins_of(endpoints: Mapping[str, Endpoint], chosen: Callable[[TableId], bool]) -> dict[str, Origin]:
    """Where a feed of these tables begins, with the tables of each shard that it cannot carry. Raises SourceError."""
    return each_shard(
        endpoints, lambda shard: origin_of(endpoints[shard], chosen, RESERVED, refuses=False, keys=True)
    )


def origin_of(
    endpoint: Endpoint,
    chosen: Callable[[TableId], bool],
    reserved: Collection[str],
    *,
    copies: bool = True,
    refuses: bool = True,
    keys: bool = False,
) -> Origin:
    """Where a shard begins. Without `copies` no row is to be copied, and nothing is asked of single tables: they are as
    empty ones. `refuses`: one table that cannot be carried is an error; else it is left out. `keys`: the shard is asked
    for foreign keys. Raises CutMissed where a table was altered meanwhile, and SourceError."""
    with connect(endpoint, snapshots=True) as session:
        listed = listed_tables(session, chosen)
        unusable, estimates = parted(listed)
        faults, declared = parted(read_declared(session, estimates, reserved))
        unusable |= faults
        if refuses and unusable:
            raise next(unusable[table] for table in listed if table in unusable)
        tables = {table: one.table for table, one in declared.items()}
        position = first_position(session)
        # Read after the seal: every row up to the cut is visible to these SELECTs.
        newest, busy = (
            _newest_keys(session, tables.values()) if copies else (dict.fromkeys(tables), frozenset())
        )
        again = read_declared(session, tables)
        children = declared_keys(session, tables) if keys else NO_KEYS
        described = describes_itself(session)
        altered = [table for table in tables if not _is_same(declared[table], again[table])]
    if altered:
        raise CutMissed(
            f"shard {endpoint.shard}, {altered[0]}: the table was altered while the first cut was taken; begin again"
        )
    behind = read_facts(endpoint, position.server, position.at, None)
    came = new_in(list(SchemaEvents(()).of(behind.facts)), position)
    # The feed follows those from their CREATE on. It cannot begin with none.
    tables = {table: known for table, known in tables.items() if table not in came} or tables
    left = _emptied_since(endpoint, position, tables, behind)
    definitions = () if described else definitions_at(endpoint, position, tables)
    if copies:
        # What came later than `behind` came later than the SELECTs.
        stretches: list[_Stretch] = [(one.start, one.end) for one in position.prepared]
        if behind.groups:
            stretches.append((position.at, None))
        left |= busy | _left_by_rows(endpoint, position, stretches, tables, definitions)
    return Origin(
        position=position,
        tables=tables,
        estimates=dict.fromkeys(unusable, 0) | estimates,
        newest=newest,
        definitions=definitions,
        left=left,
        comments={table: one.comments for table, one in declared.items()},
        wordings={table: one.wording for table, one in declared.items()},
        unusable=unusable,
        keys=children,
    )


def _is_same(before: Declared, now: Declared | Unsupported) -> bool:
    """Whether a table is declared as before. Its comments are for people."""
    return isinstance(now, Declared) and (now.table, now.wording) == (before.table, before.wording)


def _newest_keys(
    session: Session, tables: Iterable[Table]
) -> tuple[dict[TableId, Bound | None], frozenset[TableId]]:
    """The largest key of each table, and the tables of which the server gave none: somebody holds a lock. So one table
    keeps no other from its begin; its chunks wait for it."""
    newest: dict[TableId, Bound | None] = {}
    busy: set[TableId] = set()
    for table in tables:
        try:
            newest[table.id] = newest_key(session, table.id, chunk_key(table))
        except ServerSaid as error:
            if error.retry is not Retry.SAME:
                raise
            busy.add(table.id)
    return newest, frozenset(busy)


def first_position(session: Session) -> Position:
    """A verified position at which a shard can begin: it is proven sealed. Raises NothingVisible where none can be.

    `session`: one for snapshots."""
    resets = ask_resets(session)
    sealed = mysql_position(session) if session.server.mysql else _sealed_position(session)
    return msgspec.structs.replace(sealed, resets=resets)


def _left_by_rows(
    endpoint: Endpoint,
    position: Position,
    stretches: Iterable[_Stretch],
    tables: Mapping[TableId, Table],
    definitions: Sequence[Definition],
) -> frozenset[TableId]:
    """The tables of which a key went away behind the cut: it may have been larger than those that SELECT shows.

    On a server at rest the cut lies before the last transaction, which may have been a DELETE. Or it was the XA COMMIT
    of one: its rows stand where they were prepared, before the cut.
    """
    wanted = Wanted(
        keys={table.id: table.key for table in tables.values()},
        kinds={table.id: logged_as_binary(table.columns) for table in tables.values()},
        definitions={definition.table: definition for definition in definitions},
    )
    left: set[TableId] = set()
    for start, stop in stretches:
        with read_log(endpoint, position.server, start, stop, wanted) as log:
            left |= {read.table.id for read in log.images() if _has_gone(read)}
        # Of rows that cannot be read it is not known which keys went.
        left |= {one.table for one in log.stretch.facts if isinstance(one, PartialImage | Unreadable)}
    return frozenset(left)


def _has_gone(read: Images) -> bool:
    """Whether a key that there was before is among the images."""
    return bool(pc.any(pc.equal(read.batch.column(SIDE), BEFORE)).as_py())


def _emptied_since(
    endpoint: Endpoint, position: Position, tables: Collection[TableId], behind: Stretch
) -> frozenset[TableId]:
    """The tables that a TRUNCATE emptied after the cut: no row image says which keys went.

    Raises CutMissed when the log behind the cut holds a statement that would end the feed. So it does for one that
    leaves open how columns were declared at the cut.

    So it is on a server at rest that wrote a checkpoint event behind its last statement. A snapshot there proves
    nothing of what stands in front of it.
    """
    events = SchemaEvents(tables).of(behind.facts)
    stored = StoredAt(endpoint, position.server, position.at, behind.at, events)
    emptied: set[TableId] = set()
    for event in stored.events:
        did = stored.judged(event, tables)
        if isinstance(did, Columns) and (did.modified or did.renamed):
            raise CutMissed(
                f"shard {endpoint.shard}, {did.table} at {event.at}: {REDEFINED}, and the "
                "log proves that visible only when something follows: commit any transaction on the shard, then start "
                "again"
            )
        if isinstance(did, Stop):
            raise CutMissed(
                f"shard {endpoint.shard}, {did.table} at {event.at}: {did.reason}, and the log proves that visible "
                "only when something follows: commit any transaction on the shard, then start again"
            )
        if isinstance(did, Columns) and did.emptied:
            emptied.add(did.table)
    return frozenset(emptied)


def _sealed_position(session: Session) -> Position:
    """A position that is proven sealed, reached from the start of its file.

    XA RECOVER is empty before and after: rows prepared earlier would not be in the log that the feed reads.
    """
    for attempt in range(SEAL_ATTEMPTS):
        older = attempt >= NEWEST_FILE_ATTEMPTS
        position = _try_to_seal(session, in_older_file=older)
        if position is not None:
            return position
        world.sleep(0.05)
    raise NothingVisible(
        f"shard {session.endpoint.shard}: no position of its log could be proven visible; does a commit hang "
        "(SHOW PROCESSLIST)? If the server is at rest, commit any transaction there, then start again"
    )


def _try_to_seal(session: Session, *, in_older_file: bool) -> Position | None:
    """The last transaction's start, or the start of the file that the newest checkpoint event names.

    That file is the newest one, up to a second after a rotation; `in_older_file` takes an older one, too.
    Only a snapshot asked for after that event was read proves more than it (epoch/seal.py).
    """
    endpoint, server = session.endpoint, session.server
    await_no_xa(session)
    snapshot = snapshot_offset(session)
    try:
        log = scan(endpoint, server, LogOffset(snapshot.file, _FILE_START), snapshot)
        begun = newest_sealed(None, None, snapshot, None, log.checkpoints)
        if begun is not None and begun.file == snapshot.file:
            position = _newest_position(session, log, begun)
        elif begun is not None and in_older_file:
            older = scan(endpoint, server, begun, snapshot)
            position = Position(
                begun,
                older.files[0].born,
                server,
                GtidList.parse(older.files[0].gtid_list or ""),
                prepared=known_prepared(endpoint, begun, older.xa),
            )
        else:
            return None
    except CutMissed:
        return None
    return None if open_xa(session) else position


def _newest_position(session: Session, log: Stretch, begun: LogOffset) -> Position:
    """`begun`, the start of the newest file, or a later position sealed by a snapshot taken now.

    `log` is what was read of the file so far. Holds when XA RECOVER is empty afterwards; raises CutMissed.
    """
    endpoint, server = session.endpoint, session.server
    snapshot = snapshot_offset(session)
    if snapshot.file != begun.file or went_backwards(log.at, snapshot):
        raise CutMissed(f"shard {endpoint.shard}: the log went on from {log.at} to {snapshot} meanwhile")
    rest = log if snapshot == log.at else scan(endpoint, server, log.at, snapshot)
    sealed = newest_sealed(begun, None, snapshot, rest.last, [], xa_over=True) or begun
    gtids = GtidList.parse(log.files[0].gtid_list or "")
    if sealed != begun:
        for gtid in [*({} if rest is log else log.newest).values(), *rest.newest_before.values()]:
            gtids = gtids.with_gtid(gtid)
    if rest.last is not None and sealed == rest.last.end:
        gtids = gtids.with_gtid(rest.last.gtid)
    prepared = known_prepared(endpoint, sealed, log.xa if rest is log else log.xa + rest.xa)
    return Position(sealed, log.files[0].born, server, gtids, prepared=prepared)
