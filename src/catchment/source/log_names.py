"""A log that changed its base name: its server was restarted with another log_bin, and kept its index and its files.

Numbers order the files of one name alone. The index orders all of them, which `SHOW BINARY LOGS` lists. So no stretch
of log leads from one name to another: a cut stands at the last group of a name, then at the head of the next file.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from catchment.model.cut import Cut
from catchment.model.errors import COPY_AGAIN, CutMissed, Diverged
from catchment.model.gtidset import GtidSet
from catchment.model.position import Gtids, LastGroup, LogOffset, Order, Position, relation
from catchment.model.source import Endpoint
from catchment.source.log import read_facts

_FILE_START = 4


def order_by_index(files: Sequence[str], one: LogOffset, other: LogOffset) -> Order:
    """How two places of a log lie to one another, in files of whatever names. `files`: all names, oldest first.

    Servers purge the oldest files first: a file that is not listed came before all that are. CONCURRENT where neither
    of two names is listed.
    """
    if one.base == other.base:
        return relation(one, other)
    here, there = (files.index(place.file) if place.file in files else -1 for place in (one, other))
    if here == there:
        return Order.CONCURRENT
    return Order.BEFORE if here < there else Order.AFTER


def rest_of_name(files: Collection[str], file: str) -> tuple[list[str], str] | None:
    """The files from `file` on that have its base name, and the first file of another name that comes after them. None
    where no other name follows, and where `file` is not among them. `files`: all names, oldest first."""
    rest: list[str] = []
    for name in files:
        if rest and LogOffset(name, 0).base != LogOffset(file, 0).base:
            return rest, name
        if rest or name == file:
            rest.append(name)
    return None


def end_of_name(endpoint: Endpoint, verified: Position, files: Collection[str]) -> LogOffset | None:
    """Where the last group ends that is logged under the base name of a position, or the position itself; None where no
    other name follows. A crash may have left half a group behind it.

    Reads the newest file that has a group. Raises CutMissed where that does not come to its end; SourceError.
    """
    found = rest_of_name(files, verified.at.file)
    if found is None:
        return None
    (_, *later), behind = found
    for name in reversed(later):
        last = _last_group(endpoint, verified, LogOffset(name, _FILE_START), behind)
        if last is not None:
            return last.end
        behind = name
    last = _last_group(endpoint, verified, verified, behind)
    return verified.at if last is None else last.end


def _last_group(
    endpoint: Endpoint, verified: Position, start: LogOffset | Position, behind: str
) -> LastGroup | None:
    """The last group from a place up to the head of another file."""
    stretch = read_facts(endpoint, verified.server, start, LogOffset(behind, _FILE_START))
    if not stretch.reached_stop:
        raise CutMissed(f"shard {endpoint.shard}: the log could not be read up to file {behind}; try again")
    return stretch.last


def at_next_name(endpoint: Endpoint, verified: Position, files: Collection[str]) -> Position:
    """The position at the head of the file that comes next, where no group of its name follows; else `verified`.

    Raises Diverged where the GTIDs at the head of that file are not those of a log that goes on here.
    """
    while end_of_name(endpoint, verified, files) == verified.at:
        found = rest_of_name(files, verified.at.file)
        assert found is not None
        head = LogOffset(found[1], _FILE_START)
        file = read_facts(endpoint, verified.server, head, None, budget=1).files[0]
        gtids = verified.server.gtids(file.gtid_list or "")
        if not may_follow(verified.gtids, gtids):
            raise Diverged(
                f"shard {endpoint.shard}: the server lists log file {head.file} after {verified.at.file}, but it "
                f"begins at the GTIDs {gtids or '(none)'}, and the log before it ends at {verified.gtids or '(none)'}; "
                f"{COPY_AGAIN}"
            )
        verified = replace(verified, at=head, born=file.born, gtids=gtids, event=None)
    return verified


def cut_at_next_names(cut: Cut, found: Mapping[str, Position]) -> Cut:
    """A cut where some logs go on in files of another name.

    A server begins such a file as it starts, and recovers before it answers anybody: all that lies in front of the file
    is visible, but for the XA transactions of the position.
    """
    moved = cut.moved(found)
    states = {
        shard: state if state.sealed is not None else replace(state, sealed=state.position.at)
        for shard, state in moved.shards.items()
    }
    return replace(moved, shards=states)


def may_follow(before: Gtids, now: Gtids) -> bool:
    """Whether a log that ends at some GTIDs may go on in a file that begins at others.

    MySQL begins a file with all that it has executed. MariaDB keeps its GTIDs in a file that has the log's base name
    (`binlog.state`), so one that goes back to a name begins where it left off under it, and logs GTIDs again.
    """
    if isinstance(before, GtidSet) or isinstance(now, GtidSet):
        return now == before
    newest = {gtid.domain: gtid.sequence for gtid in before.gtids}
    return all(gtid.sequence <= newest.get(gtid.domain, -1) for gtid in now.gtids)
