"""Where a feed stands, from the state store alone: it asks no shard and no lake."""

from collections.abc import Iterable, Sequence

import msgspec

from catchment import world
from catchment.model.epoch import Manifest, Plan
from catchment.model.epoch_number import epoch_text, seconds_ahead
from catchment.model.order import Kept
from catchment.model.progress import THROUGH, Forecast, LogProgress, Progress
from catchment.model.sessions import Claim, ceiling_of, held_beside, others_text
from catchment.model.table import TableId
from catchment.model.throttle import Throttled
from catchment.model.verification import Comparison, UnderWay, Verification
from catchment.state.journal import entries
from catchment.state.lease import holder_in
from catchment.state.moments import time_text
from catchment.state.notes import Entries, ErrorNote, NotCarried, Setting, Trouble
from catchment.state.orders import listed
from catchment.state.sessions import claims_beside
from catchment.state.store import Store
from catchment.watch.table_status import NOBODY_RUNS, NOT_YET, Beside, TableStatus, table_statuses
from catchment.watch.throttles import throttled_text

_ORDERS_SHOWN = 20


class ErrorStatus(msgspec.Struct, frozen=True):
    """An error that a run met `count` times; `kind` is its class, `shard` is empty where it is not known."""

    kind: str
    message: str
    shard: str
    first: str
    last: str
    count: int


class RunStatus(msgspec.Struct, frozen=True):
    """The newest run. Without `ended` it runs, or was killed: then `last_sign_of_life` says about when.
    `version`: of Catchment, empty where it did not write it yet. `strategy`: by which it copies rows."""

    owner: str
    version: str
    strategy: str
    started: str
    last_sign_of_life: str
    ended: str | None
    exit_code: int | None
    error: ErrorStatus | None


class TroubleStatus(msgspec.Struct, frozen=True):
    """What a run that goes on tries again, `tries` times since then: to reach a shard, or without a shard to read an
    epoch. `text` says all of it."""

    shard: str
    since: str
    tries: int
    kind: str
    message: str
    text: str


class ThrottledStatus(msgspec.Struct, frozen=True):
    """A shard of which no rows are copied since then for the source's sake, and by which check. That has a value and a
    limit where these are numbers. `text` says all of it."""

    shard: str
    since: str
    check: str
    value: float | None
    limit: float | None
    text: str


class NotCarriedStatus(msgspec.Struct, frozen=True):
    """A table that `tables` takes and the feed does not carry. It says why, which shards have the table, and the first
    epoch that is known to be without it."""

    table: str
    shards: tuple[str, ...]
    epoch: int
    epoch_text: str
    reason: str


class OrderStatus(msgspec.Struct, frozen=True):
    """An order under its number: what was asked by whom and when, and what became of it (`open`, `done` or
    `refused`)."""

    number: int
    order: str
    user: str
    asked: str
    state: str
    answer: str


class SettingStatus(msgspec.Struct, frozen=True):
    """A setting of the copy that somebody changed, and what the feed file said then. It is in force until a run finds
    another value there."""

    name: str
    value: str
    file_value: str
    user: str
    since: str


class ComparisonStatus(msgspec.Struct, frozen=True):
    """A comparison that a run made in the background, or makes: rows compared of about so many, keys that differ by
    table. Without `ended` it has begun, and `waits` says what keeps it from going on. Of one that is whole: its
    epochs as text, keys that were `mended`, what is `left`, with the reason, and `unproven`: how many keys were
    compared by the log alone."""

    began: str
    ended: str | None
    rows: int
    expected: int
    differences: int
    tables: dict[str, int]
    waits: str = ""
    epoch_text: str = ""
    mended: int = 0
    left: tuple[str, ...] = ()
    unproven: int = 0


class VerificationStatus(msgspec.Struct, frozen=True):
    """The comparisons that runs make in the background: the last that is whole, and the one that has begun. `next`:
    when another begins; empty: now, or never."""

    last: ComparisonStatus | None = None
    now: ComparisonStatus | None = None
    next: str = ""


class SessionsStatus(msgspec.Struct, frozen=True):
    """The sessions of a server that a run has, of the `ceiling` for all feeds of the state store; `others`: what these
    have, by feed. A run that has none waits for the `least` that it needs. `text` says all of it."""

    server: str
    held: int
    least: int
    ceiling: int
    others: dict[str, int]
    text: str


class Status(msgspec.Struct, frozen=True):
    """A feed. `epoch` is the newest committed one (0: none), `epoch_text` its spelling. `ahead_seconds`: by how much
    its number is ahead of now, after a clock that was ahead. `lag_seconds` is the age of its
    cut, or how long ago all logs were seen to stand at it. `pending` names the record that the next one has for
    certain: a manifest, or nothing yet. `absent`: the shards that the epoch closed without, and as of when their rows
    stand. `behind`: the logs that the run has yet to catch up with. `copy`, `log` and `whole`: until all rows are
    copied, all logs are caught up, and both. `runner` is empty when nobody runs the feed; `run` is unknown until a run
    of a Catchment that keeps it has written the store. `verification`: of the comparisons that runs make in the
    background. `troubles`, `throttled`, `sessions`: of a feed that is run; `errors` and `orders`: the newest ones,
    the newest first. Times are UTC, as `2026-11-22T04:12:07Z`."""

    feed: str
    runner: str
    run: RunStatus | None
    troubles: tuple[TroubleStatus, ...]
    errors: tuple[ErrorStatus, ...]
    epoch: int
    epoch_text: str
    ahead_seconds: float
    lag_seconds: float | None
    pending: str
    cut: dict[str, str]
    absent: dict[str, str]
    tables: tuple[TableStatus, ...]
    tables_not_carried: tuple[NotCarriedStatus, ...]
    orders: tuple[OrderStatus, ...] = ()
    throttled: tuple[ThrottledStatus, ...] = ()
    sessions: tuple[SessionsStatus, ...] = ()
    settings: tuple[SettingStatus, ...] = ()
    verification: VerificationStatus = VerificationStatus()
    behind: tuple[LogProgress, ...] = ()
    rate: float | None = None
    copy: Forecast = THROUGH
    log: Forecast = THROUGH
    whole: Forecast = THROUGH


def read_status(store: Store) -> Status:
    """The status as of one moment; raises StateError."""
    with store.database.snapshot() as connection:
        plan, manifest, commit = store.newest_in(connection)
        committed = store.manifest_in(connection, commit.epoch) if commit else None
        owner = holder_in(connection, store)
        journal = entries(connection, store)
        kept = listed(connection, store)[:_ORDERS_SHOWN]
        claims = claims_beside(connection, store.feed)
    epoch = commit.epoch if commit else 0
    lives = owner is not None and not owner.is_dead()
    throttled = tuple(map(_throttled, journal.throttled)) if lives else ()
    progress = _progress(journal, committed, lives=lives)
    beside = Beside(plan, lives, journal.progress, {one.shard: one.text for one in throttled})
    return Status(
        feed=store.feed,
        runner=str(owner) if lives else "",
        run=_run(journal),
        troubles=tuple(_trouble(one) for one in journal.troubles) if lives else (),
        errors=tuple(_error(note) for note in reversed(journal.errors)),
        epoch=epoch,
        epoch_text=epoch_text(epoch) if commit else "",
        ahead_seconds=seconds_ahead(epoch, world.now_us()),
        lag_seconds=(world.now_us() - _as_of_us(committed, plan)) / 1e6 if committed else None,
        pending="manifest" if manifest is not None and manifest.epoch > epoch else "",
        cut={shard: str(position) for shard, position in committed.cut.positions.items()}
        if committed
        else {},
        absent={s: time_text(since) for s, since in committed.absent.items()} if committed else {},
        tables=table_statuses(committed, beside) if committed else (),
        tables_not_carried=tuple(_not_carried(journal.uncarried, committed)),
        orders=tuple(map(_order, kept)),
        behind=progress.logs,
        rate=progress.rate,
        copy=progress.copy,
        log=progress.log,
        whole=progress.whole,
        throttled=throttled,
        sessions=tuple(_sessions(claims, store.feed)) if lives else (),
        settings=tuple(map(_setting, journal.settings)),
        verification=_verification(journal.verification),
    )


def _progress(journal: Entries, committed: Manifest | None, *, lives: bool) -> Progress:
    """That of the run; without one, or before its first look, nothing is known of what is left."""
    if lives and journal.progress is not None:
        return journal.progress
    unknown = Forecast(why=NOT_YET if lives else NOBODY_RUNS)
    copied = committed is not None and committed.cut.copied
    return Progress(0, (), (), None, THROUGH if copied else unknown, unknown, unknown)


def _order(kept: Kept) -> OrderStatus:
    order, answer = kept.order, kept.answer
    state = "open" if answer is None else "done" if answer.done else "refused"
    said = "" if answer is None else answer.said
    return OrderStatus(kept.number, str(order), order.user, time_text(order.asked_us), state, said)


def _throttled(one: Throttled) -> ThrottledStatus:
    breach, since = one.breach, time_text(one.since_us)
    return ThrottledStatus(
        one.shard, since, breach.check.value, breach.value, breach.limit, throttled_text(one)
    )


def _sessions(claims: Sequence[Claim], feed: str) -> Iterable[SessionsStatus]:
    """Of the newest run of the feed; of others all that claim."""
    newest = max((one.fence for one in claims if one.feed == feed), default=0)
    for mine in claims:
        if mine.run != (feed, newest):
            continue
        allowed = ceiling_of([one for one in claims if one.server == mine.server])
        what = f"has {mine.held}" if mine.held else f"waits since {time_text(mine.since_us)} for {mine.least}"
        text = f"{what} of {allowed} sessions on {mine.server} ({others_text(mine, claims)})"
        others = held_beside(mine, claims)
        yield SessionsStatus(mine.server, mine.held, mine.least, allowed, others, text)


def _setting(one: Setting) -> SettingStatus:
    return SettingStatus(one.name, one.value, one.file_value, one.user, time_text(one.since_us))


def _verification(known: Verification) -> VerificationStatus:
    return VerificationStatus(
        None if known.last is None else _comparison(known.last),
        None if known.now is None else _under_way(known.now),
        time_text(known.next_us) if known.next_us and known.now is None else "",
    )


def _comparison(one: Comparison) -> ComparisonStatus:
    return ComparisonStatus(
        began=time_text(one.began_us),
        ended=time_text(one.ended_us),
        rows=one.rows,
        expected=one.rows,
        differences=one.differences,
        tables=one.tables,
        epoch_text=" to ".join(dict.fromkeys(map(epoch_text, one.epochs))),
        mended=one.mended,
        left=one.left,
        unproven=one.unproven,
    )


def _under_way(one: UnderWay) -> ComparisonStatus:
    began = time_text(one.began_us)
    return ComparisonStatus(began, None, one.rows, one.expected, one.differences, one.tables, one.waits)


def _run(journal: Entries) -> RunStatus | None:
    run = journal.run
    if run is None:
        return None
    return RunStatus(
        run.owner,
        run.version,
        run.strategy.value,
        time_text(run.started_us),
        time_text(journal.alive_us or run.started_us),
        time_text(run.ended_us) if run.ended_us is not None else None,
        run.exit_code,
        _error(run.error) if run.error is not None else None,
    )


def _error(note: ErrorNote) -> ErrorStatus:
    first, last = time_text(note.first_us), time_text(note.last_us)
    return ErrorStatus(note.kind, note.message, note.shard, first, last, note.count)


def _trouble(one: Trouble) -> TroubleStatus:
    return TroubleStatus(one.shard, time_text(one.since_us), one.tries, one.kind, one.message, str(one))


def _not_carried(tables: Sequence[NotCarried], committed: Manifest | None) -> Iterable[NotCarriedStatus]:
    reasons = {one.table: one.why for one in committed.outside} if committed else {}
    by_table: dict[TableId, list[NotCarried]] = {}
    for one in tables:
        by_table.setdefault(one.table, []).append(one)
    for table, parts in by_table.items():
        epoch = min(one.epoch for one in parts)
        shards = tuple(one.shard for one in parts)
        why = reasons.get(table, "the feed began without it")
        yield NotCarriedStatus(str(table), shards, epoch, epoch_text(epoch), why)


def _as_of_us(committed: Manifest, plan: Plan | None) -> int:
    """When the source was last known to be as in the newest epoch: at its cut, or at rest when planned again; of the
    shard that has been away longest."""
    at = committed.time_us
    if plan is not None and committed.cut.stood_at(plan.tick):
        at = max(at, plan.tick.time_us)
    return min((at, *committed.absent.values()))
