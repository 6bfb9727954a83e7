"""The feed file that a run uses, and the order that brought it while the feed ran."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from catchment import world
from catchment.config import Feed
from catchment.config.another import another
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, ConfigError
from catchment.model.order import Answer, Kept
from catchment.model.table import TableId
from catchment.state.carried import leaving
from catchment.state.treatments import must_keep_treatments

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Edition:
    """A feed and the tables that leave it. `order`: what brought it, which gets its `answer` when the run uses it.
    `before`: what the run used, and uses again where it cannot be taken up."""

    feed: Feed
    leave: Collection[TableId] = ()
    order: Kept | None = None
    answer: Answer | None = None
    before: "Edition | None" = None

    def tell(self, answer: Callable[[tuple[Kept, ...], tuple[Answer, ...]], None]) -> None:
        """The run uses it: answer the order that brought it."""
        if self.order is not None and self.answer is not None:
            answer((self.order,), (self.answer,))

    def refused(self, fault: CatchmentError) -> "Edition":
        """What the run uses where this cannot be taken up. Raises the fault where there is nothing to go back to."""
        if self.before is None:
            raise fault
        return replace(
            self.before, leave=(), order=self.order, answer=Answer(False, str(fault), world.now_us())
        )


def another_edition(now_by: Edition, kept: Kept, standing: Manifest) -> Answer | Edition:
    """What becomes of an order to go by another feed file. A run that began with that file finds nothing to
    change, so that to obey again does no harm."""
    order, now = kept.order, world.now_us()
    try:
        found = another(now_by.feed, order.value)
        must_keep_treatments(found.feed, standing)
        gone = leaving(found.feed.tables, standing, order.leave)
    except ConfigError as fault:
        return Answer(False, str(fault), now)
    later = ", ".join(found.kept_back)
    if not found.changed:
        if later:
            said = f"{later} cannot change while a feed runs; change the feed file and start the run again"
            return Answer(False, said, now)
        return Answer(True, "nothing to do: the run already uses this file", now)
    said = f"the run uses the new {', '.join(found.changed)}"
    if later:
        said += f"; the next run will use the new {later}"
    _log.info("another feed file: %s", said)
    return Edition(found.feed, gone, kept, Answer(True, said, now), Edition(now_by.feed))
