"""The checks of a shard, as the feed file has them: each is one question, whose answer lets rows pass or does not."""

import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import IO

from catchment.config import Feed, ThrottleConfig
from catchment.model.errors import SourceError
from catchment.model.source import Endpoint
from catchment.model.throttle import Breach, Check, breach_of
from catchment.source.load import (
    ASK_SECONDS,
    LoadSessions,
    answer_to,
    history_list_length,
    replica_lag,
    threads_running,
)
from catchment.source.session import Session

_OK = 200


@dataclass(frozen=True, slots=True)
class Probe:
    """One check: `ask` gives what keeps rows from passing, None where nothing does. It raises where it cannot be made,
    in about five seconds at most, ten where a server does not let it in."""

    check: Check
    ask: Callable[[LoadSessions], Breach | None]


@dataclass(frozen=True)
class Checks:
    """Those of a feed."""

    feed: Feed

    def of(self, shard: str, throttle: ThrottleConfig) -> tuple[Probe, ...]:
        """The checks of a shard, the cheapest first."""
        return tuple(self._of(shard, throttle))

    def _of(self, shard: str, throttle: ThrottleConfig) -> Iterator[Probe]:
        described = self.feed.shard(shard)
        endpoint = described.endpoint(counted=self.feed.source.sessions_max is not None)
        if throttle.flag_file is not None:
            yield Probe(Check.FLAG_FILE, partial(_flagged, throttle.flag_file))
        if throttle.http is not None:
            yield Probe(Check.HTTP, partial(_told_by, throttle.http.get_secret_value()))
        if throttle.threads_running is not None:
            yield _numbered(Check.THREADS_RUNNING, endpoint, threads_running, throttle.threads_running)
        if throttle.history_list_length is not None:
            limit = throttle.history_list_length
            yield _numbered(Check.HISTORY_LIST_LENGTH, endpoint, history_list_length, limit)
        if throttle.query is not None:
            answer = partial(_answer, throttle.query.select)
            yield _numbered(Check.QUERY, endpoint, answer, throttle.query.at_most)
        if throttle.replica_lag is not None:
            for replica in described.replica_endpoints():
                of = f"{replica.host}:{replica.port}"
                yield _numbered(Check.REPLICA_LAG, replica, replica_lag, throttle.replica_lag, of)


def _numbered(
    check: Check, endpoint: Endpoint, number: Callable[[Session], float | None], limit: float, of: str = ""
) -> Probe:
    return Probe(check, lambda sessions: breach_of(check, number(sessions.on(endpoint)), limit, of))


def _answer(select: str, session: Session) -> float | None:
    return answer_to(session, select)


def _flagged(file: Path, sessions: LoadSessions) -> Breach | None:
    """Raises OSError where nobody can tell whether the file exists."""
    try:
        file.stat()
    except FileNotFoundError:
        return None
    return Breach(Check.FLAG_FILE, f"{file} exists")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer other than 200."""

    def redirect_request(
        self, req: object, fp: IO[bytes], code: int, msg: str, headers: object, newurl: str
    ) -> None:
        return None


def _told_by(url: str, sessions: LoadSessions) -> Breach | None:
    """Raises SourceError where no answer comes. No message has the address, which may hold a secret."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "catchment"})
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=ASK_SECONDS) as answer:
            status = int(answer.status)
    except urllib.error.HTTPError as fault:
        fault.close()
        status = fault.code
    except urllib.error.URLError as fault:
        reason = fault.reason
        words = str(reason.strerror or "not reached") if isinstance(reason, OSError) else "not reached"
        raise SourceError(words) from None
    except (OSError, HTTPException, ValueError) as fault:
        raise SourceError(type(fault).__name__) from None
    if status == _OK:
        return None
    return Breach(Check.HTTP, f"answers {status}, and is to answer {_OK}", float(status), float(_OK))
