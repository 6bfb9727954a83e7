"""One shard of a stream: its log and its chunks, turn by turn, and what is known of its tables."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from catchment.feed.planner import Planner
from catchment.model.cut import Tick
from catchment.model.errors import CatchmentError, ConnectionLost, Retry
from catchment.model.position import LogOffset, Resets
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.serve.stream.advance import UNTOLD, Advance, Told, Void, advanced
from catchment.serve.stream.chunks import CopiedRows, Copying, copied
from catchment.serve.stream.family_turn import is_bare
from catchment.serve.stream.keys import with_keys, without_rows_to_come
from catchment.serve.stream.resume import copied_again
from catchment.serve.stream.tables import Chosen, Known, known_now
from catchment.serve.stream.views import Views
from catchment.source.standby import Standby


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
    yet. Nothing counts before `took` is called with it: a turn may be read once more."""

    def __init__(
        self, endpoint: Endpoint, chosen: Chosen, planner: Planner, standby: Standby, turn_bytes: int
    ) -> None:
        self.known: Known | None = None
        self._endpoint = endpoint
        self._chosen = chosen
        self._planner = planner
        self._standby = standby
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
        self._views.at(state, known)
        return state, [Void(table, UNTOLD) for table in lost]

    def read(
        self,
        state: ShardState,
        stop: LogOffset,
        resets: Resets | None,
        *,
        until: int | None,
        shown: bool,
        untold: bool,
    ) -> Step:
        """Read the log up to a place; as `Advance` has it. `resets` None: the shard did not answer. Raises
        CatchmentError."""
        known = self._tables(state)
        view = self._views.at(state, known)
        if state.position.at == stop:
            return Step(state, known, None, open=self._open)
        endpoint = self._endpoint
        if resets is None:
            raise ConnectionLost(f"shard {endpoint.shard}: it does not answer")
        told = advanced(
            Advance(
                endpoint,
                state,
                shown,
                known,
                stop,
                self._turn_bytes,
                resets,
                self._chosen,
                self._standby,
                until,
                view,
                untold,
            )
        )
        acted, opened = told.acted, self._open
        lacking = told.redefines and any(copy.table not in known.shapes for copy in told.state.copies)
        if told.voids or told.altered or lacking or opened:
            known = self._known_now(told.state)
            here = with_keys(endpoint, told.state, known)
            # Of other keys nobody has seen yet whether they changed rows.
            acted = acted or here.state.keys != told.state.keys
            told, opened = dataclasses.replace(told, state=here.state), here.open
        self._views.told(told.state.position.at, acted=acted)
        if view is not None and view.used:
            self._views.at(told.state, known)
        return Step(told.state, known, told, open=opened)

    def copied(self, step: Step, tick: Tick) -> Step:
        """A step with the next chunks of its tables. Raises CatchmentError."""
        view = self._views.at(step.state, step.known)
        work = Copying(self._endpoint, step.state, step.known, view, step.open)
        found = copied(work, self._planner, tick)
        if view is not None and view.used:
            self._views.at(step.state, step.known)
        return Step(found.state, step.known, step.told, found.rows, step.open)

    def took(self, step: Step) -> None:
        """A step counts."""
        self.known, self._open = step.known, step.open

    def prepare(self) -> None:
        """Log in for the next log."""
        self._standby.prepare()

    def rest(self, state: ShardState) -> None:
        """The log stands still: give up sessions, and replace views, that have become old. Raises CatchmentError."""
        self._standby.rest()
        try:
            self.sees_children(state)
        except CatchmentError as error:
            if error.retry is Retry.NEVER:
                raise

    def sees_children(self, state: ShardState) -> bool:
        """Whether a view shows what foreign keys do from `state` on, if there are any. Raises CatchmentError."""
        return not state.keys or self._views.at(state, self._tables(state)) is not None

    def close(self) -> None:
        """Give all sessions back."""
        self._planner.close()
        self._standby.close()
        self._views.close()

    def _tables(self, state: ShardState) -> Known:
        self.known = self.known or self._known_now(state)
        return self.known

    def _known_now(self, state: ShardState) -> Known:
        tables = {copy.table for copy in state.copies}
        return known_now(self._endpoint, state.position.server, tables, self._chosen)
