"""What a server shows of itself: its feeds with their readers, clients and subscribers."""

import msgspec

from catchment.serve.hub.client import Standing
from catchment.serve.hub.following import ReaderStanding
from catchment.serve.hub.subscribers import SubscriberStanding
from catchment.serve.server.feeds import Feeds


class FeedShown(msgspec.Struct, frozen=True):
    """One feed. `readers`: those that clients share."""

    name: str
    readers: list[ReaderStanding]
    clients: list[Standing]
    subscribers: list[SubscriberStanding]


class ServerShown(msgspec.Struct, frozen=True):
    """All feeds, by name."""

    feeds: list[FeedShown]


def shown(feeds: Feeds) -> ServerShown:
    """As of now. Raises StateError where a state store with subscribers cannot be read."""
    return ServerShown(
        [
            FeedShown(
                name,
                served.hub.reader_standings(),
                served.hub.standings(),
                [] if served.kept is None else served.kept.standings(),
            )
            for name, served in feeds.by_name
        ]
    )
