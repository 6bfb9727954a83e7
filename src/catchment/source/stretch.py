"""What a reader of the log met between its start and the place to which it has come."""

from collections.abc import Iterable
from dataclasses import dataclass

from catchment.model.gtidset import GtidSet, UuidGtid
from catchment.model.position import GroupKind, Gtid, LastEvent, LastGroup, LogOffset, XaGroup, reaches
from catchment.source.groups import GroupPlace, Tally
from catchment.wire.log.decoder import LogDecoder
from catchment.wire.log.facts import Checkpoint, Fact, LogFile, XaEnd, XaPrepare


@dataclass(frozen=True)
class Stretch:
    """What a reader met between its start and `at`.

    `files`: the log files met, in order. `first`: of MySQL, the GTID of the first group. `newest`: per domain the last
    GTID met; `newest_before`: the same without the last group. `named`: all GTIDs met, where the server is MySQL.
    `last_event` ends at `at`; None where it is not known. `boundary`: ordinal of the first
    group beyond the epoch that was asked for. `xa`: the groups that prepare or end XA transactions, in order.
    `event_time`: seconds since 1970 of the last group; `held`: of the first one that was held back for its time.
    `group_bytes`: of the groups in the log; `read_bytes`: what the server sent.
    `voids`: ranges of image sequence numbers that were undone.
    """

    at: LogOffset
    files: tuple[LogFile, ...]
    first: UuidGtid | None
    newest: dict[int, Gtid]
    newest_before: dict[int, Gtid]
    named: GtidSet
    last: LastGroup | None
    last_event: LastEvent | None
    boundary: int
    groups: int
    xa: tuple[XaGroup, ...]
    facts: tuple[Fact, ...]
    voids: list[tuple[int, int]]
    read_bytes: int
    group_bytes: int
    event_time: int
    reached_stop: bool
    whole: bool
    held: int | None = None

    @property
    def checkpoints(self) -> list[str]:
        """The files that checkpoint events name, in order (MariaDB)."""
        return [fact.file for fact in self.facts if isinstance(fact, Checkpoint)]


def stretch_of(
    decoder: LogDecoder, tally: Tally, start: LogOffset, read_bytes: int, *, over: bool
) -> Stretch:
    """The stretch from `start` to the end of the last group in `tally`, which the decoder may have passed.

    `over`: no more is decoded, so that the end of a dump is the end of the log.
    """
    at, files, last, last_event = decoder.at, tuple(decoder.files), decoder.last_group, decoder.last_event
    facts: Iterable[Fact] = decoder.facts
    # A dump that was left behind the event that names the next file: nothing of that file is known.
    between = bool(files) and at.file != files[-1].name and not decoder.reached_stop
    passed = between or _end(last) != _end(tally.last)
    if passed:
        at = tally.last.end if tally.last is not None else start
        files, last, last_event = files[: tally.last_file + 1], tally.last, None
    if passed or not over:
        facts = (fact for fact in facts if not reaches(fact.at, at))
    facts = tuple(facts)
    reached_stop = decoder.reached_stop and not passed
    return Stretch(
        at=at,
        files=files,
        first=tally.first,
        newest=dict(tally.newest),
        newest_before=dict(tally.newest_before),
        named=tally.named,
        last=last,
        last_event=last_event,
        boundary=tally.count if tally.boundary is None else tally.boundary,
        groups=tally.count,
        xa=_xa_groups(facts, tally.xa),
        facts=facts,
        voids=list(decoder.voids),
        read_bytes=read_bytes,
        group_bytes=tally.bytes,
        event_time=tally.event_time,
        reached_stop=reached_stop,
        whole=reached_stop or (over and decoder.ended and not passed),
        held=tally.held,
    )


def _end(group: LastGroup | None) -> LogOffset | None:
    return None if group is None else group.end


def _xa_groups(facts: tuple[Fact, ...], places: dict[int, GroupPlace]) -> tuple[XaGroup, ...]:
    found = []
    for fact in facts:
        if isinstance(fact, XaPrepare | XaEnd) and fact.group in places:
            place = places[fact.group]
            kind = GroupKind.XA_PREPARE if isinstance(fact, XaPrepare) else GroupKind.XA_END
            committed = isinstance(fact, XaEnd) and fact.committed
            found.append(
                XaGroup(kind, committed, fact.xid, place.start, place.end, fact.group, place.seconds)
            )
    return tuple(found)
