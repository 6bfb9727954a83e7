"""What a feed file says of its tables' rows and columns, held against what the feed carries."""

from catchment.config import Feed
from catchment.model.epoch import Manifest
from catchment.model.errors import ConfigError
from catchment.state.arrangements import must_be_arrangeable


def must_match(feed: Feed, first: Manifest) -> None:
    """Raise ConfigError for what is said of no table or column of the feed: a slip would leave a column open."""
    names = [(shape.table, c.column.name) for shape in first.shapes for c in shape.columns]
    idle = [rule.match for rule in feed.columns if not any(rule.takes(*name) for name in names)]
    if idle:
        raise ConfigError(
            f"columns: {', '.join(idle)}: no column of a chosen table has this name; correct it "
            "(schema.table.column) or take the rule out"
        )
    for section, said in (("modes", feed.modes), ("arrange", feed.arrange)):
        idle = [one.match for one in said if not any(one.takes(shape.table) for shape in first.shapes)]
        if idle:
            raise ConfigError(
                f"{section}: {', '.join(idle)}: no chosen table has this name; correct it or take it out"
            )
    for shape in first.shapes:
        must_be_arrangeable(shape, feed.treatment_of(shape.table), begins=True)


def must_keep_treatments(feed: Feed, standing: Manifest) -> None:
    """Raise ConfigError where the feed file says else of a table than what its rows were written by."""
    for shape in standing.shapes:
        said = feed.treatment_of(shape.table)
        what = None
        if said.mode is not shape.mode:
            what = (
                f"modes: {shape.table} is {shape.mode.value} since the feed began, and {said.mode.value} now"
            )
        elif said.rules != shape.rules:
            what = f"columns: those for {shape.table} are not what the feed began with, or mask_key is another one"
        if what is not None:
            raise ConfigError(
                f"{what}: the rows that it has would be unlike those to come; put back what was there, or start a new "
                "feed (another `name` and `sink.path`)"
            )
        must_be_arrangeable(shape, said, begins=False)
