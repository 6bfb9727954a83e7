"""Tells somebody what happens to a feed: JSON to a command's standard input, or as an HTTP POST.

A thread of its own sends one notice after another, each in bounded time; nothing waits for it but the end of a run.
"""

import json
import logging
import os
import queue
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import IO

from catchment import world
from catchment.config import NotifyConfig, NotifyEvent
from catchment.state.moments import time_text

SEND_SECONDS_MAX = 10.0
END_SECONDS_MAX = 15.0
_WAITING_MAX = 100
_log = logging.getLogger(__name__)


class _Refused(Exception):
    """A notice was not taken; the message names neither command line nor URL, which may hold a secret."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would go on as a GET without the notice."""

    def redirect_request(
        self, req: object, fp: IO[bytes], code: int, msg: str, headers: object, newurl: str
    ) -> None:
        return None


class Notifier:
    """Notices of one feed. Without command and URL it sends nothing; `noticed` hears of each of them all the same. Any
    thread may call it, and no call waits but `close`."""

    def __init__(
        self,
        feed: str,
        config: NotifyConfig,
        noticed: Callable[[tuple[NotifyEvent, str]], None] = lambda told: None,
    ) -> None:
        self._feed = feed
        self._noticed = noticed
        self._on = frozenset(config.on)
        self._sends: dict[str, Callable[[bytes], None]] = {}
        if config.command:
            command = config.command
            self._sends["notify.command"] = lambda notice: _run(command, notice)
        if config.url is not None:
            url = config.url.get_secret_value()
            self._sends["notify.url"] = lambda notice: _post(url, notice)
        self._failing: set[str] = set()
        self._known: dict[NotifyEvent, set[str]] = {}
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING_MAX)
        self._thread = threading.Thread(target=self._send, name="notify", daemon=True)
        if self._sends:
            self._thread.start()

    def tell(self, event: NotifyEvent, message: str, **details: object) -> None:
        """Something happened; `details` become keys of the notice beside feed, event, time, message and text."""
        self._noticed((event, message))
        if not self._sends or event not in self._on:
            return
        notice = {
            "feed": self._feed,
            "event": event.value,
            "time": time_text(world.now_us()),
            "message": message,
            "text": f"feed {self._feed}: {message}",  # what chat services show
            **details,
        }
        try:
            self._waiting.put_nowait(json.dumps(notice).encode())
        except queue.Full:
            self._failed("notify", f"{_WAITING_MAX} notices wait already")

    def keep(self, event: NotifyEvent, messages: Mapping[str, str]) -> None:
        """What is so now, by a name. A notice tells of it when it begins, and again only when it had ended
        meanwhile."""
        before = self._known.get(event, set())
        self._known[event] = set(messages)
        for name, message in messages.items():
            if name not in before:
                self.tell(event, message)

    def close(self) -> None:
        """Send what waits, but not for longer than END_SECONDS_MAX."""
        if not self._sends:
            return
        with suppress(queue.Full):
            self._waiting.put(None, timeout=END_SECONDS_MAX / 2)
        self._thread.join(END_SECONDS_MAX)

    def _send(self) -> None:
        while (notice := self._waiting.get()) is not None:
            for name, send in self._sends.items():
                try:
                    send(notice)
                except _Refused as why:
                    self._failed(name, str(why))
                else:
                    self._failing.discard(name)

    def _failed(self, name: str, why: str) -> None:
        """Log it, once until one goes through again."""
        if name not in self._failing:
            self._failing.add(name)
            _log.warning("feed %s: %s failed, and the feed goes on: %s", self._feed, name, why)


def _run(command: tuple[str, ...], notice: bytes) -> None:
    """Give the notice to a command; raises _Refused."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the terminal is for the feed
        )
    except (OSError, ValueError) as fault:
        raise _Refused(getattr(fault, "strerror", None) or type(fault).__name__) from None
    try:
        process.communicate(notice, timeout=SEND_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise _Refused(f"it took more than {SEND_SECONDS_MAX:.0f} s and was ended") from None
    if process.returncode:
        raise _Refused(f"it ended with exit code {process.returncode}")


def _post(url: str, notice: bytes) -> None:
    """POST the notice; raises _Refused."""
    headers = {"Content-Type": "application/json", "User-Agent": "catchment"}
    try:
        request = urllib.request.Request(url, notice, headers)
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=SEND_SECONDS_MAX):
            pass
    except urllib.error.HTTPError as fault:
        fault.close()
        raise _Refused(f"HTTP status {fault.code}") from None
    except urllib.error.URLError as fault:
        reason = fault.reason
        raise _Refused(
            str(reason.strerror or reason) if isinstance(reason, OSError) else "not reached"
        ) from None
    except (OSError, HTTPException, ValueError) as fault:
        raise _Refused(type(fault).__name__) from None
