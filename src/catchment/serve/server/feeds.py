"""The feeds that a server has: their clients, their subscribers, and the tokens that open them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from catchment.config import Feed, load
from catchment.config.serving import ServeConfig, ServedFeed
from catchment.model.errors import ConfigError, Denied
from catchment.serve.hub.ask import Ask
from catchment.serve.hub.entrant import Entrant
from catchment.serve.hub.hub import Hub, Limits, Stays
from catchment.serve.hub.subscribers import Subscribers
from catchment.serve.hub.telling import M, Telling
from catchment.serve.server.admission import CLOSED, Lock
from catchment.serve.stream.source import source_of
from catchment.state.store import Store


@dataclass(frozen=True, slots=True)
class Served:
    """A feed's clients. `kept`: its subscribers, where it has some."""

    lock: Lock
    hub: Hub
    kept: Subscribers | None = None

    @property
    def subscribers(self) -> Subscribers:
        """Raises ConfigError where it has none."""
        if self.kept is None:
            raise ConfigError(
                "subscriber: this server keeps none for the feed; give `subscribers: true` in its file"
            )
        return self.kept

    @contextmanager
    def following(
        self, ask: Ask, subscriber: str, form: Callable[[], Telling[M]], shown: str, stays: Stays
    ) -> Iterator[Callable[[], Iterator[M]]]:
        """What pulls a client's next messages. `subscriber`: its name, empty for one without. `shown`: from where it
        comes, for the page. `stays`: whether it is still there. Pulling raises what opening one does."""
        beats = ask.flags.heartbeat_interval
        if subscriber:
            kept, shown = self.subscribers, f"{subscriber} at {shown}"
            entrant = Entrant(kept.opening(subscriber, ask, form, shown, stays), kept.close, form(), beats)
        else:
            entrant = Entrant(self.hub.opening(ask, form, shown, stays), self.hub.close, form(), beats)
        with closing(entrant):
            yield entrant.pull


class Feeds:
    """By their names."""

    def __init__(self, served: Mapping[str, Served]) -> None:
        self._served = served

    @property
    def names(self) -> list[str]:
        """In order."""
        return sorted(self._served)

    @property
    def by_name(self) -> list[tuple[str, Served]]:
        """In order."""
        return sorted(self._served.items())

    @property
    def clients(self) -> int:
        """How many have a stream now."""
        return sum(len(served.hub.standings()) for served in self._served.values())

    def open_to(self, authorization: str) -> bool:
        """Whether any of them is, by the header of a call."""
        return any([served.lock.opens(authorization) for served in self._served.values()])

    def served(self, feed: str, authorization: str) -> Served:
        """The feed. Raises Denied, alike for a wrong token and for a feed that is none."""
        served = self._served.get(feed)
        if served is None or not served.lock.opens(authorization):
            raise Denied(CLOSED)
        return served

    def stop(self) -> None:
        """End the shared readers."""
        for served in self._served.values():
            served.hub.stop()


def feeds_of(config: ServeConfig) -> Feeds:
    """Those of a server's file. Raises ConfigError where a feed file is wrong or says what a stream cannot do, and
    StateError for a state store that cannot be opened."""
    found: dict[str, Served] = {}
    for given in config.feeds:
        feed = load(given.file, secrets=("password", "state") if given.subscribers else ("password",))
        _must_be_servable(given, feed)
        if feed.name in found:
            raise ConfigError(
                f"feeds: two files have the feed {feed.name}; clients could not tell them apart"
            )
        found[feed.name] = _served(config, given, feed)
    return Feeds(found)


def _served(config: ServeConfig, given: ServedFeed, feed: Feed) -> Served:
    source = source_of(feed)
    lock = Lock.of(token.get_secret_value() for token in given.tokens)
    hub = Hub(source, feed.copying, Limits(config.clients_max, config.buffer, config.slow), feed.tables)
    if not given.subscribers:
        return Served(lock, hub)
    store = Store.open(feed.state.get_secret_value(), feed.name)
    return Served(lock, hub, Subscribers(hub, source, store, config.unacknowledged))


def _must_be_servable(given: ServedFeed, feed: Feed) -> None:
    """Streams tell rows as the source has them: what a feed hides from its lake would be told."""
    if feed.columns:
        raise ConfigError(
            f"feeds: {given.file} leaves out, masks or renames columns, which streams do not: serve a file without "
            "`columns`, and exclude the tables whose columns nobody may see"
        )
