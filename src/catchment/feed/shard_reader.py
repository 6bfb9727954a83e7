"""One shard as the clock sees it: a session of its own, and which of its offsets may enter a tick."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final, TypeVar

import pymysql

from catchment import world
from catchment.epoch.chain import must_continue, went_backwards
from catchment.feed.held import Pause
from catchment.model.errors import (
    COPY_AGAIN,
    CatchmentError,
    Diverged,
    LoginRefused,
    LogLost,
    LogRenamed,
    Retry,
    WireError,
)
from catchment.model.position import DUMP_OFFSET_MAX, LogOffset, Position, Resets, Server, reaches
from catchment.model.retries import may_pass
from catchment.model.source import Endpoint
from catchment.source.identity import must_be_same_log
from catchment.source.log import read_facts
from catchment.source.log_names import end_of_name
from catchment.source.offsets import ask_resets, log_files, snapshot_offset, snapshot_session
from catchment.source.session import Session, connect
from catchment.watch.troubles import Troubles

BACKWARD_TICKS_MAX = 2

_T = TypeVar("_T")

Admit = Callable[[], object]
ALL_READY: Final[Mapping[str, Admit]] = MappingProxyType({})


class ShardReader:
    """A shard's session for offsets and counts of RESET, made anew when it is lost. One thread at a time uses it.

    `bears`: the run goes on where somebody has to mend what keeps the shard from answering. `admit` raises while the
    shard may not be asked yet; a reader that it has let pass calls it no more. `heard`: when the shard answered last
    (steady seconds). `owed`: an answer that nobody waits for any more. `name_ends`: where the log ends that has
    the base name of the verified position, once it has gone on under another.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        server: Server,
        troubles: Troubles,
        *,
        bears: bool = False,
        admit: Admit | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.server = server
        self.troubles = troubles
        self.backward = 0
        self.newest: LogOffset | None = None
        self.name_ends: LogOffset | None = None
        self.verified: Position | None = None
        self.heard = world.steady_seconds()
        self.owed: world.Future[object] | None = None
        self._session: Session | None = None
        self._bears = bears
        self._admit = admit
        self._refused = Pause()
        # Whether nobody has looked since the session is there for files of other names in between, and between which
        # files there are none.
        self._is_new = True
        self._unbroken: tuple[str, str] | None = None

    def read(self) -> tuple[LogOffset, int]:
        """The offset now, and the time it was read in microseconds since 1970."""
        offset = self._asked(snapshot_offset)
        return offset, world.now_us()

    def resets(self) -> Resets:
        """How often RESET was said so far."""
        return self._asked(ask_resets)

    def _asked(self, question: Callable[[Session], _T]) -> _T:
        self._refused.must_be_over()
        began, began_at = world.now_us(), world.steady_seconds()
        try:
            if self._admit is not None:
                self._admit()
                self._admit = None
            if self._session is None:
                self._session = snapshot_session(self.endpoint, self.server)
                self._is_new = True
            answer = question(self._session)
        except CatchmentError as error:
            error.shard = self.endpoint.shard
            self.close()
            if may_pass(error, bears=self._bears):
                self.troubles.failed(error, error.shard, began)
            if error.retry is Retry.NEVER or isinstance(error, LoginRefused):
                self._refused.after(error, began_at)
            raise
        self.heard = world.steady_seconds()
        self._refused.end()
        self.troubles.passed(self.endpoint.shard)
        return answer

    def close(self) -> None:
        """Give the session up."""
        if self._session is not None:
            with suppress(pymysql.err.Error):
                self._session.close()
            self._session = None

    def accept(self, offset: LogOffset) -> LogOffset | None:
        """The offset that may enter a tick, None when the tick is to be dropped.

        A second step backwards in a row: Diverged when the log is not the one read before. Else the tick before was
        torn, as FLUSH BINARY LOGS during a commit makes them, and the clock goes on from this offset. The cut stays
        where it is while the offset lies before it.

        Where the log goes on under another base name, ticks end with the old name. Raises LogRenamed once it is read to
        there.

        The clock also drops an offset from which no dump can start. A transaction of more than 4 GiB was written, and
        the server is about to begin a new file.
        """
        if offset.offset > DUMP_OFFSET_MAX:
            return None
        if self.verified is not None:
            self._look_for_names(self.verified, offset)
            if self.name_ends is not None:
                self.must_not_end(self.verified)
                self.backward = 0
                self.newest = self.name_ends
                return self.name_ends
        seen = [self.newest, self.verified.at if self.verified else None]
        if not any(went_backwards(before, offset) for before in seen if before is not None):
            self.backward = 0
            self.newest = offset
            return offset
        self.backward += 1
        if self.backward < BACKWARD_TICKS_MAX:
            return None
        self._must_be_same_log(offset)
        self.backward = 0
        if self.verified is not None and not reaches(offset, self.verified.at):
            offset = self.verified.at
        self.newest = offset
        return offset

    def must_not_end(self, position: Position) -> None:
        """Raise LogRenamed where a tick has shown that the log goes on behind `position` in files of another name."""
        if position.at == self.name_ends:
            renamed = LogRenamed(
                f"shard {self.endpoint.shard}: after {position.at} its log goes on in files of another name; go on "
                "from the last vgtid"
            )
            renamed.shard = self.endpoint.shard
            raise renamed

    def _look_for_names(self, verified: Position, offset: LogOffset) -> None:
        """Have `name_ends` say whether the log goes on under another base name after the verified position.

        An offset of the same name may come after files of another one. Its server was restarted twice then, so that the
        session is new; a server at work keeps its name.
        """
        if self.name_ends is not None and reaches(self.name_ends, verified.at):
            return
        self.name_ends = None
        files = verified.at.file, offset.file
        same = offset.base == verified.at.base
        if same and (files[0] == files[1] or files == self._unbroken or not self._is_new):
            self._is_new = False
            return
        self.name_ends = self._end_of_name(verified)
        self._unbroken = files if self.name_ends is None else None

    def _end_of_name(self, verified: Position) -> LogOffset | None:
        """Where the log ends that has the base name of the verified position; None where no other name follows."""
        self.close()  # the clock has one session on a server at a time
        with connect(self.endpoint, self.server) as session:
            files = log_files(session)
        return end_of_name(self.endpoint, verified, files)

    def _must_be_same_log(self, offset: LogOffset) -> None:
        """Raise Diverged unless the log can be read at the verified position, in a file of the same birth."""
        self.close()  # the clock has one session on a server at a time
        verified, shard = self.verified, self.endpoint.shard
        try:
            if verified is not None and verified.at.base == offset.base:
                must_be_same_log(self.endpoint, verified)
                stretch = read_facts(self.endpoint, self.server, verified, verified.at)
                must_continue(shard, verified, stretch.files[0].born, None)
                return
            reason = None
        except (LogLost, WireError) as error:
            reason = error
        lost = Diverged(
            f"shard {shard}: the log stood at {self.newest} and now stands at {offset}: "
            f"it was reset (RESET MASTER) or the server was replaced; {COPY_AGAIN}"
        )
        lost.shard = shard
        raise lost from reason
