"""Lakes and state stores as a version of Catchment leaves them, kept for the versions after it.

`python -m tests.layers.state.keep NAME` writes `tests/layers/state/kept/NAME.tar.gz`. Run it once, with the version
of that name: what is kept is what that version wrote. Each directory in it is a feed that ended in another place of
its last epoch.
"""

import json
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from unittest.mock import patch

from catchment.feed.applier import Applier
from catchment.feed.settle import take_over
from catchment.model import records
from catchment.model.chunk import Chunk
from catchment.model.cut import Cut, Tick
from catchment.model.epoch import Manifest, Outside, Part, Plan
from catchment.model.epoch_number import epoch_number
from catchment.model.position import Gtid, GtidList, LastEvent, LogOffset, Position, Resets, Server
from catchment.model.shard import Copy, ShardState
from catchment.model.table import TableId
from catchment.serve.spark_source.offset import written
from catchment.serve.spark_source.stream_cut import StreamCut, first_cut
from catchment.state.faults import Fault
from catchment.state.lease import hold
from catchment.state.store import Store
from tests.layers.sink.lakes import lake_of
from tests.layers.sink.model import FEED, INT, ORDERS, TEXT, delta, shape, write

KEPT = Path(__file__).parent / "kept"
ITEMS = shape("items", {"id": INT, "sig": TEXT}, ("id",))
TABLES = (ORDERS, ITEMS)
SHARDS = ("-80", "80-")
SECOND = 1_790_000_000
# The newest epoch is begun, and its run ends here; None: it is whole.
ENDS: dict[str, Fault | None] = {
    "whole": None,
    "manifest": Fault.AFTER_MANIFEST,
    "tables": Fault.BETWEEN_APPLIES,
    "applied": Fault.AFTER_APPLY,
    "row": Fault.AFTER_EPOCH_ROW,
}
NEWEST = 4


class End(BaseException):
    """What ends a run as a kill would."""


def number(turn: int) -> int:
    """The epoch of a turn; 0 for the one before the first."""
    return epoch_number(SECOND + turn) if turn else 0


def position(shard: str, turn: int) -> Position:
    """Where a shard's log stands at a turn; the second shard's moves in every second turn only."""
    moved = turn if shard == SHARDS[0] else turn // 2
    server = Server(1 + SHARDS.index(shard), f"db{SHARDS.index(shard)}", 3306)
    return Position(
        LogOffset("binlog.000001", 1000 + moved),
        SECOND,
        server,
        GtidList((Gtid(0, server.server_id, 1 + moved),)),
        Resets(0, SECOND, SECOND + turn),
        event=LastEvent(31, 4711 + moved),
    )


def state(shard: str, turn: int) -> ShardState:
    """A shard as of a turn; rows of one table are left to copy, of the first shard."""
    copies = [Copy(t.table, done=True) for t in TABLES]
    if shard == SHARDS[0]:
        copies[0] = Copy(ORDERS.table, (10 * turn,), (1000,), rows=10 * turn, rows_expected=100)
    return ShardState(position(shard, turn), position(shard, turn).at, tuple(copies))


def record(root: Path, turn: int) -> Manifest:
    """The epoch of a turn: a row for each table, whose file is written; the first one makes the tables."""
    name = f"{number(turn)}-a-0"
    rows = [(SHARDS[0], number(turn), False, (turn, f"v{turn}"))]
    deltas = [delta(t, write(root, t, Part.CHANGES, name, rows)) if turn > 1 else delta(t) for t in TABLES]
    return Manifest(
        feed=FEED,
        previous=number(turn - 1),
        window_us=120,
        cut=Cut(number(turn), (SECOND + turn) * 1_000_000, {shard: state(shard, turn) for shard in SHARDS}),
        shapes=TABLES,
        deltas=tuple(deltas),
        changes=len(TABLES) if turn > 1 else 0,
        log_bytes=100,
        outside=(Outside(TableId("shop", "odd"), 0, "it has no key"),),
    )


def plan(turn: int) -> Plan:
    """The plan of a turn."""
    offsets = {shard: position(shard, turn).at for shard in SHARDS}
    tick = Tick(number(turn), (SECOND + turn) * 1_000_000, 120, offsets)
    chunk = Chunk(SHARDS[0], ORDERS.table, (10 * turn - 10,), (10 * turn,))
    return Plan(number(turn), number(turn - 1), tick, {s: position(s, turn - 1).at for s in SHARDS}, (chunk,))


def run(directory: Path, work: Callable[[Applier], None], fault: Callable[[Fault], None]) -> None:
    """A run of the feed in `directory` that takes over, and then does `work`."""
    sink = lake_of(directory / "lake", lambda: fault(Fault.BETWEEN_APPLIES))
    with (
        closing(Store.open(f"sqlite:///{directory}/state.db", FEED)) as store,
        hold(store, fence_above=sink.fence()) as lease,
    ):
        applier = Applier(store, lease, sink, threading.Event(), fault)
        row = sink.newest()
        take_over(applier, list(TABLES) if row else [], row)
        work(applier)


def turn_of(directory: Path, turn: int, fault: Callable[[Fault], None]) -> Callable[[Applier], None]:
    """What a run does in a turn."""

    def work(applier: Applier) -> None:
        made = record(directory / "lake", turn)
        applier.store.put_plan(plan(turn), applier.lease.fence)
        applier.store.put_manifest(made, applier.lease.fence)
        fault(Fault.AFTER_MANIFEST)
        applier.apply(made)

    return work


def make(directory: Path, end: Fault | None) -> None:
    """A feed of NEWEST epochs that ends at `end` of the newest one. The first of its records are whole, the others say
    what has changed."""

    struck = [False]

    def fault(place: Fault) -> None:
        if struck[0] and place is end:
            raise End

    def work(applier: Applier) -> None:
        for turn in range(1, NEWEST + 1):
            struck[0] = turn == NEWEST
            turn_of(directory, turn, fault)(applier)

    directory.mkdir(parents=True)
    with suppress(End), patch.object(records, "SHARE_MAX", 0):
        run(directory, work, fault)


def stream(turn: int) -> StreamCut:
    """A stream of the first table that begins at a turn."""
    copies = (Copy(ORDERS.table, born_after=(1000,), rows_expected=100), Copy(ORDERS.table, done=True))
    shards = {
        shard: ShardState(position(shard, turn), position(shard, turn).at, (copy,))
        for shard, copy in zip(SHARDS, copies, strict=True)
    }
    return first_cut(Cut(number(turn), (SECOND + turn) * 1_000_000, shards), copy=True)


def main(name: str) -> None:
    """Write the archive of a version."""
    with tempfile.TemporaryDirectory() as made:
        for kind, end in ENDS.items():
            make(Path(made, kind), end)
        offset = written(stream(2))
        Path(made, "offset.json").write_text(json.dumps(offset))
        KEPT.mkdir(exist_ok=True)
        with tarfile.open(KEPT / f"{name}.tar.gz", "w:gz") as archive:
            for path in sorted(Path(made).iterdir()):
                if path.name != "offset":
                    archive.add(path, path.name)


if __name__ == "__main__":
    main(sys.argv[1])
