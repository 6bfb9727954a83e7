"""A feed that runs in a thread, and is asked for its status meanwhile; one of its shards can be taken away."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from catchment.config import Feed
from catchment.feed.runner import run_feed
from catchment.model.errors import StateError
from catchment.model.table_state import TableState
from catchment.state.notes import Trouble
from catchment.state.store import Store
from catchment.watch.report import Observer
from catchment.watch.status import Status, read_status
from tests.world.patience import PATIENCE_SECONDS, until

T = TypeVar("T")


def status_of(feed: Feed) -> Status:
    with closing(Store.open(feed.state.get_secret_value(), feed.name, create=False)) as store:
        return read_status(store)


class Night:
    """A feed without Java in a thread of its own, and what it shows of its troubles."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.stop = threading.Event()
        self.shown: list[tuple[Trouble, ...]] = []
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Night":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join()

    def awaited(self, what: str, ask: Callable[[], T], holds: Callable[[T], bool]) -> T:
        """Ask until it holds; raises what ended the feed."""
        answers: list[T] = []

        def comes() -> bool:
            answers[:] = [ask()]
            if not holds(answers[0]) and self.error is not None:
                raise self.error
            return holds(answers[0])

        until(what, comes, seen=lambda: answers, every=0.1)
        return answers[0]

    def begun(self) -> "Night":
        """Wait until the loop has copied the table."""
        self.awaited("a copy", self._copied, bool)
        return self

    def _copied(self) -> bool:
        try:
            tables = self.status().tables
        except StateError:  # its store is not made yet
            return False
        return bool(tables) and all(table.state is TableState.FOLLOWING for table in tables)

    def status(self) -> Status:
        """What the feed says now."""
        return status_of(self.feed)

    def wait(self) -> None:
        """Wait until the feed has ended by itself."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            run_feed(
                self.feed,
                until_caught_up=False,
                stop=self.stop,
                observer=Observer(in_trouble=self.shown.append),
            )
        except BaseException as error:
            self.error = error
