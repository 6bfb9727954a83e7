"""What answers over HTTP while a run lives: its metrics, and its status page."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from catchment.config import Feed
from catchment.page.board import Board
from catchment.page.kept import Kept
from catchment.page.routes import metrics_of, page_of
from catchment.page.server import Server
from catchment.state.store import Store
from catchment.watch.vitals import Vitals


@contextmanager
def board_of(feed: Feed, store: Store) -> Iterator[Board | None]:
    """What the page is to show; None where the feed has no page."""
    if feed.status.port is None:
        yield None
        return
    kept = Kept(store)
    try:
        yield Board(feed, kept)
    finally:
        kept.stop()


@contextmanager
def served(feed: Feed, vitals: Vitals, board: Board | None) -> Iterator[None]:
    """Answer while the block runs. Raises ConfigError where a port cannot be listened on."""
    with ExitStack() as stack:
        metrics, status = feed.metrics, feed.status
        if metrics.port is not None:
            answer = metrics_of(vitals.registry)
            stack.callback(Server("metrics.port", metrics.address, metrics.port, answer).stop)
        if status.port is not None and board is not None:
            answer = page_of(board, vitals.registry)
            stack.callback(Server("status.port", status.address, status.port, answer).stop)
        yield
