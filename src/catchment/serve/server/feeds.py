"""The feeds that a server has: their clients, and what opens them."""

from collections.abc import Mapping
from dataclasses import dataclass

from catchment.config import Feed, load
from catchment.config.serving import ServeConfig, ServedFeed
from catchment.model.errors import ConfigError
from catchment.serve.hub.hub import Hub, Limits
from catchment.serve.server.admission import Door
from catchment.serve.stream.source import source_of


@dataclass(frozen=True, slots=True)
class Served:
    """The clients of a feed. `tables`: those that it takes, for clients that name none."""

    hub: Hub
    tables: tuple[str, ...]


def doors_of(config: ServeConfig) -> Mapping[str, Door[Served]]:
    """The feeds by name. Raises ConfigError where a feed file is wrong, or says what a stream cannot do."""
    doors: dict[str, Door[Served]] = {}
    limits = Limits(config.clients_max, config.buffer, config.slow)
    for given in config.feeds:
        feed = load(given.file, secrets=("password",))
        _must_be_servable(given, feed)
        if feed.name in doors:
            raise ConfigError(
                f"feeds: two files have the feed {feed.name}; clients could not tell them apart"
            )
        hub = Hub(source_of(feed.source), feed.copying, limits, feed.tables)
        tokens = (token.get_secret_value() for token in given.tokens)
        doors[feed.name] = Door.of(Served(hub, feed.tables), tokens)
    return doors


def _must_be_servable(given: ServedFeed, feed: Feed) -> None:
    """Streams tell rows as the source has them: what a feed hides from its lake would be told."""
    if feed.columns:
        raise ConfigError(
            f"feeds: {given.file} leaves out, masks or renames columns, which streams do not: serve a file without "
            "`columns`, and exclude the tables whose columns nobody may see"
        )
