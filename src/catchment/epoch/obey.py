"""Orders obeyed between two epochs: the manifest that comes next, and the answers. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from catchment.model.epoch import Manifest
from catchment.model.order import Action, Answer, Kept, Order
from catchment.model.shard import Copy
from catchment.model.table import TableId
from catchment.model.table_state import MOVES, Cause, TableState, state_of
from catchment.model.withheld import Withheld

_CAUSES = {
    Action.START: Cause.START,
    Action.PAUSE: Cause.PAUSE,
    Action.RESUME: Cause.RESUME,
    Action.RESTART: Cause.RESTART,
}
_THERE_ALREADY = {
    Action.START: (TableState.COPYING, TableState.RENEWING),
    Action.PAUSE: (TableState.PAUSED, TableState.HALTED),
    Action.RESUME: (TableState.COPYING, TableState.RENEWING),
}
_WHY_NOT = {
    TableState.WAITING: "the feed does not carry it; `tables` and `new_tables` say what it carries",
    TableState.FOLLOWING: "no row is left to copy; restart copies it again",
    TableState.STALE: "nothing is copied; it enters again by itself, or by start",
    TableState.LEFT: "it left the feed",
}


@dataclass(frozen=True)
class Obeyed:
    """The epoch that comes next, None where nothing changes; the answers in the order of the orders; whether the run is
    to end."""

    manifest: Manifest | None
    answers: tuple[Answer, ...]
    stops: bool


def obey(standing: Manifest, orders: Sequence[Kept], fence: int, now_us: int) -> Obeyed:
    """Carry out orders, one after another, for the run that holds `fence`.

    To carry out one again does no harm: it finds done what it asks.
    """
    after, answers, stops = standing, [], False
    for kept in orders:
        order = kept.order
        if order.table is None:
            mine = order.fence == fence
            stops = stops or mine
            answers.append(Answer(mine, "the run ends" if mine else "that run had ended", now_us))
            continue
        after, said, done = _carried_out(after, order, order.table, now_us)
        answers.append(Answer(done, said, now_us))
    changed = None if after is standing else _next(standing, after)
    return Obeyed(changed, tuple(answers), stops)


def _next(standing: Manifest, after: Manifest) -> Manifest:
    epoch = standing.epoch + 1  # the next tick has a higher number, or is waited for
    return after.without_rows(replace(after.cut, epoch=epoch), after.window_us)


def _carried_out(standing: Manifest, order: Order, table: TableId, now_us: int) -> tuple[Manifest, str, bool]:
    """The manifest after an order, what is said of it, and whether it is done."""
    state = state_of(standing, table, order.shard)
    refused = _refused(standing, order, state)
    if refused or state in _THERE_ALREADY.get(order.action, ()):
        return standing, refused or f"it is {state.value} already", not refused
    if state is TableState.STALE:
        return _asked(standing, table), "copying starts once every shard that had the table has it", True
    if order.action is Action.RESTART:
        return _renewed(standing, order, table, now_us), "it is copied again", True
    paused = order.action is Action.PAUSE
    after = _with_copies(standing, table, order.shard, lambda copy: replace(copy, paused=paused))
    return after, f"it is {state_of(after, table, order.shard).value}", True


def _refused(standing: Manifest, order: Order, state: TableState) -> str:
    """Why an order is not carried out; empty where it is."""
    if order.shard and order.shard not in standing.cut.shards:
        return f"the feed has no shard {order.shard}"
    if order.shard and order.action is Action.RESTART:
        return "a table is copied again from all its shards: give no shard"
    if state in _THERE_ALREADY.get(order.action, ()) or _CAUSES[order.action] in MOVES[state]:
        return ""
    return f"it is {state.value}: {_WHY_NOT[state]}"


def _renewed(standing: Manifest, order: Order, table: TableId, now_us: int) -> Manifest:
    """Without the table's copies: it stands as of this epoch, or as of the earlier one at which it stood."""
    stopped = standing.stopped(table, now_us, f"{order.user} ordered to copy it again")
    after = standing.without({table})
    stale = (*after.stale, replace(stopped, asked=True))
    return replace(after, stale=tuple(sorted(stale, key=lambda one: one.table)))


def _asked(standing: Manifest, table: TableId) -> Manifest:
    """The same, where the table is copied anew although the feed would leave it, or might show what was hidden."""
    if all(one.asked and not one.withheld.names for one in standing.stale if one.table == table):
        return standing
    stale = (
        replace(one, asked=True, withheld=Withheld()) if one.table == table else one for one in standing.stale
    )
    return replace(standing, stale=tuple(stale))


def _with_copies(standing: Manifest, table: TableId, shard: str, change: Callable[[Copy], Copy]) -> Manifest:
    """The manifest with other copies of a table, of those that are not done."""
    states = dict(standing.cut.shards)
    for name, state in states.items():
        if not shard or name == shard:
            copies = tuple(
                change(copy) if copy.table == table and not copy.done else copy for copy in state.copies
            )
            states[name] = state if copies == state.copies else replace(state, copies=copies)
    return replace(standing, cut=replace(standing.cut, shards=states))
