"""The one tree of errors.

Every message says what is wrong, where (shard, table, column, position) and what to do. `retry` tells
the loop whether the same work may succeed later; `exit_code` is what the command line returns
(docs/operations.md lists them).
"""

from enum import Enum
from typing import Final

# How whatever cannot be continued is copied again. A feed of the same name would find the state store's epochs, one
# with the same path the tables of the other.
NEW_FEED: Final = "a new feed (another `name` and `sink.path`)"

# How tables are copied again whose rows no log tells any more: a run has made them stale.
COPY_AGAIN: Final = "copy its tables again (a feed: `catchment dump start`; a Spark stream: a new checkpoint)"


# The exit code of a command that Ctrl-C or SIGTERM stopped.
INTERRUPTED: Final = 130
# Of a run that has caught up, but for some tables that readers see as of an earlier epoch.
LEFT_BEHIND: Final = 10
# Of a verification that found no difference, but could not compare all that was asked for.
NOT_ALL_COMPARED: Final = 11


class Retry(Enum):
    """Whether repeating the failed work can help."""

    NEVER = "never"
    SAME = "same work again"


class Scope(Enum):
    """The smallest thing that a trouble holds up, while all else goes on."""

    CHUNK = "chunk"
    TABLE = "table"
    SHARD = "shard"
    TARGET = "target"
    CLIENT = "client"
    FEED = "feed"


class CatchmentError(Exception):
    """Root of all errors raised by Catchment. `shard`: where it happened, empty where that is not known. `place`: of
    what stands in that shard's log, as `binlog.000042:1337`; empty where it is nothing of a log. `way_out`: what else
    can be done about it where it ended. `away`: what does not answer and is waited for, empty for any other error.
    `scope`: what it holds up."""

    retry = Retry.NEVER
    scope = Scope.FEED
    exit_code = 70
    away = ""
    shard = ""
    place = ""
    way_out = ""

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}; {self.way_out}" if self.way_out else said


class ConfigError(CatchmentError):
    """The feed file or an argument is wrong; lists every fault with its path in the file."""

    exit_code = 2


class NotInstalled(CatchmentError):
    """A package that only some installations need is not there; the message says which extra has it."""

    exit_code = 2


class SourceError(CatchmentError):
    """A shard refuses, or cannot be used as it is set up."""

    scope = Scope.SHARD
    exit_code = 3


class ConnectionLost(SourceError):
    """The connection to a shard broke or was refused; the same work may succeed later."""

    retry = Retry.SAME
    away = "the shard"


class LoginRefused(ConnectionLost):
    """A shard refuses the login: the password may have been changed there first."""


class NoPassword(ConnectionLost):
    """The command that says the password of a shard fails."""


class Unsupported(SourceError):
    """The source holds something that Catchment does not carry (a type, a statement, an engine)."""

    scope = Scope.TABLE


class ChildrenSought(SourceError):
    """A stretch of log changed parents: it is read again, with their children as the lake has them."""

    retry = Retry.SAME


class Undescribed(Unsupported):
    """Rows of the log do not name their columns, and no definition of their table is known at that position."""


class AlteredUnseen(SourceError):
    """Rows of the log do not fit the definition of their table at that position."""

    scope = Scope.TABLE


class HeldUp(SourceError):
    """A shard waits for somebody to mend what holds it up, and no epoch can close without it any more."""

    retry = Retry.SAME
    away = "the shard"

    def __init__(self, cause: CatchmentError) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.shard, self.place, self.exit_code = cause.shard, cause.place, cause.exit_code


class SchemaChangeFails(Unsupported):
    """The log has DDL on a table of which the feed file says `schema_change: fail`."""

    scope = Scope.FEED


class OtherServer(SourceError):
    """The server at this address is not the one whose log was read before."""


class LogLost(SourceError):
    """The log of a shard does not go on any more where it was read to."""


class Diverged(LogLost):
    """It is not the log that was read before (RESET MASTER, a lost end)."""


class Purged(LogLost):
    """The log that comes next has been deleted from the server."""


class LogRenamed(LogLost):
    """The log has been read to the end of its last file of one base name, and goes on in files of another."""


class LogRefused(SourceError):
    """The server does not send its log from a place on, and what it says shows no loss."""


class CutMissed(SourceError):
    """The log read does not end a group at the planned position; plan the epoch again."""

    retry = Retry.SAME


class NothingVisible(SourceError):
    """No position of a shard's log can be proven visible yet: its commits hang, or nothing is written to it."""

    retry = Retry.SAME


class TooManyImages(SourceError):
    """The changes behind a group of chunks are more than may be held in memory; smaller chunks may have fewer."""

    scope = Scope.CHUNK
    retry = Retry.SAME


class IncompleteImage(SourceError):
    """A row event lacks columns (binlog_row_image is not FULL in the session that wrote it)."""


class WireError(CatchmentError):
    """Bytes from a server cannot be understood."""

    scope = Scope.SHARD
    exit_code = 4


class CorruptLog(WireError):
    """A log event is malformed or its checksum is wrong; names file and offset. `at_event`: the message names the event
    in which it is."""

    at_event = False


class CorruptResult(WireError):
    """A result set packet is malformed."""


# Errors of a server that is busy: lock wait timeout, deadlock, a SELECT that took too long (MariaDB, MySQL) or was
# ended by KILL QUERY.
_BUSY = frozenset({1205, 1213, 1969, 3024, 1317})


class ServerSaid(SourceError):
    """The server answered with an error packet: `code` is its error number."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"server error {code}: {message}")
        self.code = code
        self.message = message
        self.retry = Retry.SAME if code in _BUSY else Retry.NEVER

    def __reduce__(self) -> tuple[type["ServerSaid"], tuple[int, str], dict[str, object]]:
        return ServerSaid, (self.code, self.message), self.__dict__


class SinkError(CatchmentError):
    """The lake refuses a write or is not what the state store says."""

    scope = Scope.TARGET
    exit_code = 5


class TooSlow(CatchmentError):
    """A client of a server takes what it is told more slowly than it comes."""

    scope = Scope.CLIENT
    retry = Retry.SAME


class ServerStops(CatchmentError):
    """A server ends; its clients may go on at another one."""

    scope = Scope.CLIENT
    retry = Retry.SAME


class ClientLeft(CatchmentError):
    """A client of a server has left while it stood in line: nobody hears of this."""

    scope = Scope.CLIENT


class TakenOver(CatchmentError):
    """Another client has come under the name of this one."""

    scope = Scope.CLIENT


class Denied(CatchmentError):
    """A client of a server has not shown that it may read a feed."""

    scope = Scope.CLIENT


class TooLarge(CatchmentError):
    """A message of a server is larger than its client takes; names what it holds."""

    scope = Scope.CLIENT


class TooManyClients(CatchmentError):
    """A server has as many clients as it may."""

    scope = Scope.CLIENT
    retry = Retry.SAME


class SinkConflict(SinkError):
    """Another writer committed first; start over from a fresh handle."""

    retry = Retry.SAME


class SinkAway(SinkError):
    """The store of the lake does not answer; the same work may succeed later."""

    retry = Retry.SAME
    away = "the lake"


class SinkRestored(SinkError):
    """The lake is older than the state store allows: it was restored from a copy."""


class StateError(CatchmentError):
    """The state store cannot be read or written."""

    exit_code = 6


class StateAway(StateError):
    """The state store does not answer, or is too busy or too full to write; the same work may succeed later."""

    retry = Retry.SAME
    away = "the state store"


class LeaseHeld(StateError):
    """Another runner holds the feed."""


class LeaseLost(StateError):
    """This runner was replaced by another one; it must not write any more."""


class StoppedWaiting(CatchmentError):
    """The run was stopped before it had what it waited for."""

    exit_code = INTERRUPTED


class TemporaryDisk(CatchmentError):
    """The directory for temporary files of a process cannot be written or read; names it and what is free there."""

    exit_code = 8


class FileComplete(CatchmentError):
    """A file is whole as it is: what comes next needs another one, which the same command begins."""

    retry = Retry.SAME
    exit_code = 9


class EngineError(CatchmentError):
    """Spark lost the job (a worker died, the session broke), or cannot start; the same work may succeed later."""

    retry = Retry.SAME
    exit_code = 7


class ProgramFault(CatchmentError):
    """A fault of this program, in a task; the log has its traceback."""


class VerifyDifference(CatchmentError):
    """Source and lake differ at an epoch."""

    exit_code = 1
