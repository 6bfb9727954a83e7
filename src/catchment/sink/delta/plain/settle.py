"""Bring a plain table to a later epoch in one commit: the dead get a deletion vector, what lives comes in new files.

A settle takes whole epochs of the tail, the oldest first, nets them, and asks each data file which of its rows they
replace. It reads committed epochs only. So it may be repeated after a crash, or beside another runner, and leads to
the same table.
"""

import uuid
from collections.abc import Callable

import msgspec

from catchment import world
from catchment.model.epoch import TableShape
from catchment.model.errors import SinkConflict, SinkError
from catchment.sink.delta.files import make_directory
from catchment.sink.delta.layout import (
    epoch_app,
    fence_app,
    generation_app,
    identity_columns,
)
from catchment.sink.delta.log.actions import Action, MetaData, Txn, commit_info
from catchment.sink.delta.log.checkpoint import INTERVAL
from catchment.sink.delta.log.delta_log import DeltaLog, Snapshot
from catchment.sink.delta.log.fence import must_lead
from catchment.sink.delta.log.properties import CONFIGURATION, marks
from catchment.sink.delta.plain.amended import amended_in, not_written, noted
from catchment.sink.delta.plain.arranged import partition_columns
from catchment.sink.delta.plain.emptied import not_taken
from catchment.sink.delta.plain.emptied import noted as noted_emptied
from catchment.sink.delta.plain.foreign import take_back_foreign
from catchment.sink.delta.plain.generation import generation
from catchment.sink.delta.plain.index import Index
from catchment.sink.delta.plain.made import Made, Making
from catchment.sink.delta.plain.shape import Form, properties_of, protocol_of, schema_string
from catchment.sink.delta.plain.tail import Limits, Waiting, waiting

_ATTEMPTS = 50
EPOCH_NOTE = "catchment.epoch"
_PROPERTIES = CONFIGURATION | {"delta.checkpointInterval": str(INTERVAL)}


class SettleOrder(msgspec.Struct, frozen=True):
    """What to settle: a table of which these are the logs, up to the committed epoch `until`, of which `shape`
    is the table's shape. `index`: the table's; without one, data files are scanned."""

    plain: DeltaLog
    tail: DeltaLog
    shape: TableShape
    feed: str
    fence: int
    until: int
    limits: Limits = Limits()
    form: Form = Form()
    index: Index | None = None

    @property
    def app(self) -> str:
        """Under which name the plain table carries its epoch."""
        return epoch_app(self.feed, self.shape.table)


class Settled(msgspec.Struct, frozen=True):
    """A committed settle: the plain table's version, the epoch that it is, how many changes came and rows died."""

    version: int
    epoch: int
    changes: int
    died: int


def settle(order: SettleOrder, shape_at: Callable[[int], TableShape]) -> Settled | None:
    """Settle the epochs that the order's limits admit; None when the table has all that has come to it. `shape_at`: the
    table's shape as of a committed epoch before the order's.

    Raises LeaseLost when a later runner wrote the table, SinkConflict when other writers won every attempt, and
    SinkError when the lake refuses.
    """
    log = order.plain
    for _ in range(_ATTEMPTS):
        on = log.newest()
        since = _since(order, on)
        if on is not None and take_back_foreign(str(order.shape.table), log, on):
            continue
        if on is not None and since >= order.until:
            return None
        anew = on is not None and generation(on, order.feed, order.shape.table) < order.shape.generation
        # What keeps its past is brought to the first epoch at which the new copy is exact, and then on.
        renews = order.shape.renews if anew else None
        until = order.until if renews is None else renews.at
        found = waiting(
            order.tail,
            identity_columns(order.shape),
            since=0 if anew else since,
            until=until,
            limits=order.limits,
            whole=anew,
        )
        until = until if found is None else found.epoch
        step = order
        if until < order.until:
            step = msgspec.structs.replace(order, until=until, shape=shape_at(until))
        step = msgspec.structs.replace(step, form=step.form.for_table(step.shape))
        head = _head(step, on)
        if found is None and not head and not anew:
            return None  # nothing has come to this table
        settled = _commit(step, log, on, found, head, anew=anew)
        if settled is not None:
            return settled
    raise SinkConflict(
        f"{order.shape.table}: other writers won {_ATTEMPTS} commits in a row at {log.directory}; end them"
    )


def _since(order: SettleOrder, on: Snapshot | None) -> int:
    """The epoch that the plain table is, 0 before the first."""
    if on is None:
        return 0
    must_lead(on, order.feed, order.fence, str(order.shape.table))
    return on.transactions.get(order.app, 0)


def _commit(
    order: SettleOrder,
    log: DeltaLog,
    on: Snapshot | None,
    found: Waiting | None,
    head: list[Action],
    *,
    anew: bool,
) -> Settled | None:
    """One try on top of one version; None when another commit came first. `anew`: the table was copied anew, so what
    has come is all of it. What the table has now goes, of some shards where the others stay; or where its past is kept,
    what differs."""
    now_ms = world.now_us() // 1000
    make_directory(log.directory / "_delta_log")
    made = Made(_making(order), now_ms)
    renews = order.shape.renews is not None
    try:
        if on is not None and anew and renews:
            made.renew(on, found, order.limits)
        elif on is not None and anew and order.shape.replaces is not None:
            made.take(on, found, instead_of=order.shape.replaces.shards)
        else:
            if on is not None and anew:
                made.replace_all(on)
            made.take(None if anew else on, found)
    except BaseException as error:
        made.discard()
        # Files that an erasure has deleted since are missed by those alone that began before its commit.
        if isinstance(error, SinkError) and log.newest() != on:
            return None
        raise
    marks = [Txn(fence_app(order.feed), order.fence, now_ms), Txn(order.app, order.until, now_ms)]
    if anew or (on is None and order.shape.generation):
        marks.append(Txn(generation_app(order.app), order.shape.generation, now_ms))
    goes_on = not anew or renews or order.shape.replaces is not None
    operation = "CREATE TABLE" if on is None else "MERGE" if goes_on else "WRITE"
    info = commit_info(operation, now_ms, **{EPOCH_NOTE: str(order.until)})
    after = log.put(on, info, [*head, *marks, *made.actions])
    if after is None:
        made.discard()
        return None
    return Settled(after.version, order.until, made.changes, made.died)


def _making(order: SettleOrder) -> Making:
    plain, tail = order.plain.directory, order.tail.directory
    return Making(plain, tail, order.shape, order.until, order.form, order.index or Index(plain))


def _head(order: SettleOrder, on: Snapshot | None) -> list[Action]:
    """Protocol, schema and properties, where the table does not have them: it is new, or has another form."""
    protocol, asked = protocol_of(order.shape, order.form), properties_of(order.form)
    schema, amended = schema_string(order.shape), amended_in(order.shape)
    comment = order.shape.comments.table or None
    if on is None:
        now_ms = world.now_us() // 1000
        properties = _PROPERTIES | asked | marks(order.feed)
        apart = partition_columns(order.shape)
        metadata = MetaData(str(uuid.uuid4()), schema, now_ms, properties, apart, description=comment)
        return [protocol, noted_emptied(order.shape.emptied, noted(amended, metadata))]
    found: list[Action] = []
    if (wanted := on.protocol.brought_to(protocol)) != on.protocol:
        found.append(wanted)
    metadata = on.metadata
    if msgspec.json.decode(metadata.schema_string) != msgspec.json.decode(schema):
        metadata = msgspec.structs.replace(metadata, schema_string=schema)
    if metadata.description != comment:
        metadata = msgspec.structs.replace(metadata, description=comment)
    if any(metadata.configuration.get(name, "false") != told for name, told in asked.items()):
        metadata = msgspec.structs.replace(metadata, configuration=metadata.configuration | asked)
    if not_written(amended, metadata):
        metadata = noted(amended, metadata)
    if not_taken(order.shape.emptied, metadata):
        metadata = noted_emptied(order.shape.emptied, metadata)
    return [*found, metadata] if metadata is not on.metadata else found
