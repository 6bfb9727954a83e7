"""What a feed file says about columns, held against what the feed carries."""

from catchment.config import Feed
from catchment.model.epoch import Manifest
from catchment.model.errors import ConfigError


def must_match(feed: Feed, first: Manifest) -> None:
    """Raise ConfigError for a rule that is for no column of the feed's tables: a slip would leave a column open."""
    names = [(shape.table, c.column.name) for shape in first.shapes for c in shape.columns]
    idle = [rule.match for rule in feed.columns if not any(rule.takes(*name) for name in names)]
    if idle:
        raise ConfigError(
            f"columns: {', '.join(idle)}: no column of a chosen table has this name; correct it "
            "(schema.table.column) or take the rule out"
        )


def must_keep_rules(feed: Feed, standing: Manifest) -> None:
    """Raise ConfigError where the rules of a table are not those that its rows were written by."""
    for shape in standing.shapes:
        if feed.rules_for(shape.table) != shape.rules:
            raise ConfigError(
                f"columns: those for {shape.table} are not what the feed began with, or mask_key is another one: the "
                "rows that it has would be unlike those to come; put them back, or start a new feed (another `name` "
                "and `sink.path`)"
            )
