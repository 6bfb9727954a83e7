"""One shard of a stream: its log and its chunks, turn by turn, and what is known of its tables."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from catchment.feed.planner import Planner
from catchment.model.cut import Tick
from catchment.model.errors import CatchmentError, ConnectionLost, Retry, Undescribed
from catchment.model.position import LogOffset, Resets
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.serve.stream.advance import UNTOLD, Advance, Told, Void, advanced
from catchment.serve.stream.chunks import CopiedRows, Copying, copied
from catchment.serve.stream.family_turn import is_bare
from catchment.serve.stream.keys import with_keys, without_rows_to_come
from catchment.serve.stream.resume import copied_again
from catchment.serve.stream.standing_log import StandingLog
from catchment.serve.stream.tables import Chosen, Known, known_now
from catchment.serve.stream.views import Views
from catchment.source.definitions_at import described
from catchment.source.standing import StandingDump


@dataclass(frozen=True, slots=True)
class Step:
    """A shard's part of a turn, and where it stands behind that. `known`: its tables then; `open`: those of which the
    foreign keys are not known there."""

    state: ShardState
    known: Known
    told: Told | None
    copied: Sequence[CopiedRows] = ()
    open: frozenset[TableId] = frozenset()


class ShardReader:
    """Reads one shard; one thread at a time may call it. `known`: its tables where it stands; None: nobody has asked
    yet. `log`: its log, as far as that comes by itself. Nothing counts before `took` is called with it: a turn may be
    read once more."""

    def __init__(self, endpoint: Endpoint, chosen: Chosen, planner: Planner, turn_bytes: int) -> None:
        self.known: Known | None = None
        self._endpoint = endpoint
        self._chosen = chosen
        self._planner = planner
        self.log = StandingLog(endpoint)
        self._turn_bytes = turn_bytes
        self._views = Views(endpoint)
        self._open: frozenset[TableId] = frozenset()

    def began(self, state: ShardState, *, copies: bool) -> tuple[ShardState, Sequence[Void]]:
        """The state with its foreign keys, and the tables that begin again, since theirs are not known there. `copies`:
        it begins with a copy of all tables. Raises CatchmentError."""
        known = self._tables(state)
        here = with_keys(self._endpoint, state, known)
        self._open, state = here.open, here.state
        lost: list[TableId] = []
        if copies:
            state = without_rows_to_come(state)
        else:
            lost = [copy.table for copy in state.copies if copy.table in here.open and not is_bare(copy)]
            state = copied_again(state, lost)
        self._look(state, known)
        return state, [Void(table, UNTOLD).explained(known.faults) for table in lost]

    def follows(self, state: ShardState) -> bool:
        """Whether the log comes by itself from a state on."""
        return self.log.stands_at(state.position)

    def is_known(self, state: ShardState) -> bool:
        """Whether the log comes by itself, and nobody has to ask whether it is still the same."""
        return self.log.is_known_at(state.position)

    def read(
        self,
        state: ShardState,
        stop: LogOffset | None,
        resets: Resets | None,
        *,
        until: int | None,
        shown: bool,
        untold: bool,
    ) -> Step:
        """Read the log up to a place, or what has come of one that stands; as `Advance` has it. `resets` None: nobody
        asked, or the shard did not answer. Raises CatchmentError."""
        return self._by_definitions(
            state, lambda state: self._read(state, stop, resets, until=until, shown=shown, untold=untold)
        )

    def _by_definitions(self, state: ShardState, step: Callable[[ShardState], Step]) -> Step:
        """A step from a state; from the same with definitions of its tables where the log stopped naming columns."""
        try:
            return step(state)
        except Undescribed:
            here = described(self._endpoint, state)
            if here == state:
                raise
            return step(here)

    def _read(
        self,
        state: ShardState,
        stop: LogOffset | None,
        resets: Resets | None,
        *,
        until: int | None,
        shown: bool,
        untold: bool,
    ) -> Step:
        known = self._tables(state)
        view = self._views.at(state, known)
        unmoved = Step(state, known, None, open=self._open)
        if state.position.at == stop:
            return unmoved
        asked = resets or (state.position.resets if self.is_known(state) else None)
        if asked is None:
            raise ConnectionLost(f"shard {self._endpoint.shard}: it does not answer")
        work = Advance(
            self._endpoint,
            state,
            shown,
            known,
            stop,
            self._turn_bytes,
            asked,
            self._chosen,
            until,
            view,
            untold,
            self._dump(state, stop),
        )
        told = self._told(work, checked=resets is not None)
        if told is None:
            return unmoved
        acted, opened = told.acted, self._open
        lacking = told.redefines and any(copy.table not in known.shapes for copy in told.state.copies)
        if told.voids or told.altered or lacking or opened:
            known = self._known_now(told.state)
            here = with_keys(self._endpoint, told.state, known)
            # Of other keys nobody has seen yet whether they changed rows.
            acted = acted or here.state.keys != told.state.keys
            voids = [void.explained(known.faults) for void in told.voids]
            told, opened = dataclasses.replace(told, state=here.state, voids=voids), here.open
        self._views.told(told.state.position.at, acted=acted)
        if view is not None and view.used:
            self._views.at(told.state, known)
        return Step(told.state, known, told, open=opened)

    def _told(self, work: Advance, *, checked: bool) -> Told | None:
        """What the log tells, along the dump that stands if one does. None where that came to nothing, and it was not
        asked whether the log is still the same (`checked`)."""
        if work.dump is not None:
            try:
                return advanced(work)
            except CatchmentError:
                # A dump of its own meets the same, and says what it is.
                self.log.close()
                work = dataclasses.replace(work, dump=None)
        return advanced(work) if checked and work.stop is not None else None

    def _dump(self, state: ShardState, stop: LogOffset | None) -> StandingDump | None:
        """The dump that stands at a state, if one does or can."""
        try:
            return self.log.dump_at(state.position, stop)
        except CatchmentError:
            self.log.close()
            return None

    def copied(self, step: Step, tick: Tick) -> Step:
        """A step with the next chunks of its tables. Raises CatchmentError."""
        return self._by_definitions(
            step.state, lambda state: self._copied(dataclasses.replace(step, state=state), tick)
        )

    def _copied(self, step: Step, tick: Tick) -> Step:
        view = self._views.at(step.state, step.known)
        work = Copying(self._endpoint, step.state, step.known, view, step.open)
        found = copied(work, self._planner, tick)
        if view is not None and view.used:
            self._views.at(step.state, step.known)
        return Step(found.state, step.known, step.told, found.rows, step.open)

    def took(self, step: Step) -> None:
        """A step counts."""
        self.known, self._open = step.known, step.open

    def rest(self, state: ShardState) -> None:
        """The log stands still: have what comes of it come by itself, and replace views that have become old. Raises
        CatchmentError."""
        try:
            self.log.dump_at(state.position, state.position.at)
            if state.keys:
                self._look(state, self._tables(state))
        except CatchmentError as error:
            if error.retry is Retry.NEVER:
                raise

    def sees_children(self, state: ShardState) -> bool:
        """Whether a view shows what foreign keys do from `state` on, if there are any. Raises CatchmentError."""
        return not state.keys or self._views.at(state, self._tables(state)) is not None

    def _look(self, state: ShardState, known: Known) -> None:
        """Replace views that have become old. Raises CatchmentError."""
        # A log that stopped naming columns stays as it is until a turn reads it and takes up the definitions.
        with contextlib.suppress(Undescribed):
            self._views.at(state, known)

    def close(self) -> None:
        """Give all sessions back."""
        self._planner.close()
        self.log.close()
        self._views.close()

    def _tables(self, state: ShardState) -> Known:
        self.known = self.known or self._known_now(state)
        return self.known

    def _known_now(self, state: ShardState) -> Known:
        tables = {copy.table for copy in state.copies}
        return known_now(self._endpoint, state.position.server, tables, self._chosen)
