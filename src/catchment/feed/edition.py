"""The feed file that a run uses, and the order that brought it while the feed ran."""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from msgspec import structs

from catchment import world
from catchment.config import Feed
from catchment.config.another import another
from catchment.feed.adoption import Adopted, Adoption
from catchment.model.epoch import Manifest
from catchment.model.errors import CatchmentError, ConfigError
from catchment.model.order import Action, Answer, Kept
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

    @property
    def begins(self) -> bool:
        """Whether the run begins with it; one that goes on by another feed file bears what it bore before."""
        return self.order is None

    @property
    def moved(self) -> frozenset[str]:
        """The shards that the run reaches at another address than before."""
        if self.before is None:
            return frozenset()
        was = {one.shard: (one.host, one.port) for one in self.before.feed.endpoints()}
        return frozenset(
            one.shard for one in self.feed.endpoints() if was.get(one.shard) != (one.host, one.port)
        )

    @property
    def adoption(self) -> Adoption | None:
        """The shard whose server is adopted with it."""
        if self.before is None or self.order is None or self.order.order.action is not Action.ADOPT:
            return None
        return Adoption(self.order.order.shard, self.order.order.copy)

    def tell(
        self, answer: Callable[[tuple[Kept, ...], tuple[Answer, ...]], None], adopted: Adopted | None
    ) -> None:
        """The run uses it: answer the order that brought it. `adopted`: what came of its adoption."""
        if self.order is None or self.answer is None:
            return
        lines = [] if adopted is None else [adopted.line(self.order.order.shard)]
        lines += [self.answer.said] if self.answer.said else []
        answer((self.order,), (structs.replace(self.answer, said="; ".join(lines)),))

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
    if not found.changed and order.action is Action.APPLY:
        if later:
            said = f"{later} cannot change while a feed runs; change the feed file and start the run again"
            return Answer(False, said, now)
        return Answer(True, "nothing to do: the run already uses this file", now)
    lines = [f"the run uses the new {', '.join(found.changed)}"] if found.changed else []
    lines += [f"the next run will use the new {later}"] if later else []
    _log.info("%s: %s", order, "; ".join(lines))
    return Edition(found.feed, gone, kept, Answer(True, "; ".join(lines), now), Edition(now_by.feed))
