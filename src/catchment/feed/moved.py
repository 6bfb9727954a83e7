"""Whether a server of another name has the log of a shard up to the position at which a feed stands."""

from msgspec.structs import replace

from catchment.model.errors import CutMissed, Diverged, Purged, WireError
from catchment.model.position import LogOffset, Position, gtids_after
from catchment.model.source import Endpoint
from catchment.readers.xa_rows import must_be_prepared
from catchment.source.log import read_facts
from catchment.source.offsets import ask_resets, log_files
from catchment.source.session import connect
from catchment.source.stretch import Stretch
from catchment.state.moments import time_text

_FILE_START = 4


class Comparison:
    """The log of the server that answers now, compared with that of a verified position; `compared` says what was
    found equal, in order. Methods raise Diverged naming the first thing that is not, and ConnectionLost."""

    def __init__(self, endpoint: Endpoint, verified: Position) -> None:
        self.compared: list[str] = []
        self._endpoint = endpoint
        self._verified = verified
        with connect(endpoint) as session:
            self.server = session.server
            # Before the log is read: a reset that comes later is noticed by the run.
            self._resets = ask_resets(session)
            self._files = log_files(session)

    def position(self) -> Position:
        """The position on this server, whose log has all that the feed has read of the old one."""
        if self.server.mysql != self._verified.server.mysql:
            raise self._refusal("MySQL and MariaDB write logs of different kinds")
        self._must_have_file()
        self._must_be_born_then()
        self._must_end_alike()
        self._must_have_prepared()
        return replace(self._verified, server=self.server, resets=self._resets)

    def _must_have_file(self) -> None:
        at = self._verified.at
        if at.file not in self._files:
            oldest, newest = next(iter(self._files), None), next(reversed(self._files), None)
            several = (
                f"its files are {oldest} to {newest}" if oldest != newest else f"its only file is {oldest}"
            )
            has = several if oldest else "it writes no log"
            raise self._refusal(f"it has no log file {at.file}; {has}")
        if self._files[at.file] < at.offset:
            raise self._refusal(
                f"its log file {at.file} ends at {self._files[at.file]}: it is an older copy, or lost its end"
            )
        self.compared.append(f"log file {at.file} is there, {self._files[at.file]:,} bytes long")

    def _must_be_born_then(self) -> None:
        file, known = self._verified.at.file, self._verified.born
        born = self._read(LogOffset(file, _FILE_START), None, budget=1).files[0].born
        if born != known:
            raise self._refusal(
                f"its log file {file} began at {_utc(born)}, the one that was read at {_utc(known)}"
            )
        self.compared.append(f"it began at {_utc(born)}, as the one that was read")

    def _must_end_alike(self) -> None:
        verified, at = self._verified, self._verified.at
        head = LogOffset(at.file, _FILE_START)
        stretch = self._read(head, at) if at != head else self._read(head, None, budget=1)
        gtids = self.server.gtids(stretch.files[0].gtid_list or "")
        if at != head:
            gtids = gtids_after(gtids, stretch.newest, stretch.named)
        if gtids != verified.gtids:
            raise self._refusal(
                f"up to there its log has the GTIDs {gtids}, the one that was read {verified.gtids}"
            )
        if verified.event is not None and stretch.last_event != verified.event:
            raise self._refusal("the event that ends there is not the one that was read")
        if verified.event is None and not str(gtids):
            raise self._refusal(
                "its groups have no GTIDs, and the feed has not kept the event that ends there"
            )
        self.compared.append(f"up to {at} it has the GTIDs {gtids or '(none)'}, as the one that was read")
        if verified.event is not None:
            self.compared.append(f"the event that ends at {at} is the one that was read")

    def _must_have_prepared(self) -> None:
        still = [one for one in self._verified.prepared if one.committed is None]
        for one in still:
            if one.start.file not in self._files:
                raise self._refusal(
                    f"it has no log file {one.start.file}, in which the XA transaction {one.xid} was prepared that is "
                    "still open"
                )
            must_be_prepared(self._endpoint.shard, one, self._read(one.start, one.end))
            self.compared.append(f"XA PREPARE {one.xid} stands at {one.start}")

    def _read(self, start: LogOffset, stop: LogOffset | None, *, budget: int | None = None) -> Stretch:
        try:
            stretch = read_facts(self._endpoint, self.server, start, stop, budget=budget)
        except CutMissed as error:
            raise self._refusal(f"no group of its log ends at {stop}") from error
        except (Diverged, Purged, WireError) as error:
            raise self._refusal(str(error)) from error
        if stop is not None and not stretch.reached_stop:
            raise self._refusal(f"its log ends at {stretch.at}")
        return stretch

    def _refusal(self, why: str) -> Diverged:
        verified, endpoint = self._verified, self._endpoint
        return Diverged(
            f"shard {endpoint.shard}: the feed stands at {verified.at} of {verified.server}; now {self.server} "
            f"answers, and its log does not go on from there: {why}"
        )


def _utc(seconds: int) -> str:
    return time_text(seconds * 1_000_000)
