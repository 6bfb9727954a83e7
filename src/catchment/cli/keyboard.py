"""Keys of the terminal that a run is attached to: they give the orders of `catchment dump` and `catchment stop`."""

import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Self

from catchment.config import Feed
from catchment.feed.dump import dump, stop
from catchment.model.errors import CatchmentError
from catchment.model.order import Kept

KEYS = "keys: p pause, r resume, q end"
_AWAY_SECONDS = 0.5


class Keyboard:
    """Listens while its `with` block runs, in a thread of its own. `told` shows which keys there are, and what became
    of the last one. Where standard input is no terminal, or is another job's, it does nothing.

    The terminal gives keys at once and shows none of them meanwhile; Ctrl-C and Ctrl-Z are what they were.
    """

    def __init__(self, feed: Feed, told: Callable[[str], None]) -> None:
        self._feed = feed
        self._told = told
        self._before: list[Any] | None = None
        self._terminal = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self._woken, self._wake = os.pipe()

    def __enter__(self) -> Self:
        if self._terminal is not None and self._is_ours():
            self._before = termios.tcgetattr(self._terminal)
            self._continued = signal.signal(signal.SIGCONT, self._on_continue)
            tty.setcbreak(self._terminal)
            self._told(KEYS)
            listening = threading.Thread(
                target=self._listen, args=(self._terminal,), name="keyboard", daemon=True
            )
            listening.start()
        return self

    def __exit__(self, *how: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGCONT, self._continued)
            os.write(self._wake, b"x")
            self.restore()

    def restore(self) -> None:
        """Give the terminal back as it was; may be called from a signal's handler."""
        if self._terminal is not None and self._before is not None and self._is_ours():
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._before)

    def _is_ours(self) -> bool:
        """Whether this process is in the terminal's foreground; another one is stopped when it reads or sets it."""
        try:
            return self._terminal is not None and os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:  # the terminal has hung up
            return False

    def _on_continue(self, number: int, frame: FrameType | None) -> None:
        """Behind Ctrl-Z and `fg` the terminal is as the shell left it."""
        if self._terminal is not None and self._is_ours():
            tty.setcbreak(self._terminal)

    def _listen(self, terminal: int) -> None:
        while True:
            ready, _, _ = select.select([terminal, self._woken], [], [])
            if self._woken in ready:
                return
            if not self._is_ours():
                select.select([self._woken], [], [], _AWAY_SECONDS)
                continue
            try:
                key = os.read(terminal, 1)
            except OSError:
                return
            if not key:
                return
            self._obey(key)

    def _obey(self, key: bytes) -> None:
        try:
            if key in b"pP":
                self._order("pause")
            elif key in b"rR":
                self._order("resume")
            elif key in b"qQ":
                self._told("ending in order ...")
                stop(self._feed)
        except CatchmentError as error:
            self._told(f"{KEYS}   {error}")

    def _order(self, action: str) -> None:
        self._told(f"{action}: waiting for the run's answer ...")
        self._told(f"{KEYS}   {action}: {_summary(dump(self._feed, action))}")


def _summary(kept: Sequence[Kept]) -> str:
    """`done for 2 tables; refused for 1 (it is following)`."""
    answers = [one.answer for one in kept if one.answer is not None]
    done = sum(answer.done for answer in answers)
    refused = [answer.said for answer in answers if not answer.done]
    parts = [f"done for {done} tables"] if done else []
    if refused:
        parts.append(f"refused for {len(refused)} ({refused[0]})")
    if len(answers) < len(kept):
        parts.append(f"not answered for {len(kept) - len(answers)}")
    return "; ".join(parts)
