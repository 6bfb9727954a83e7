"""Tables that tools for schema changes make beside others do not enter a feed by a pattern."""

import pytest

from catchment.config.feed import Feed
from catchment.config.shadows import SHADOWS
from catchment.model.table import TableId


@pytest.mark.parametrize(
    "name",
    ["_t_gho", "_t_ghc", "_t_20261125120000_del", "_t_new", "__t_new", "_t_old", "_t_old_1764", "_t_chkpnt"],
)
def test_a_shadow_table_does_not_enter_unless_it_is_named(name: str) -> None:
    shadow, other = TableId("shop", name), TableId("shop", name.replace("_", ""))
    feed = Feed.model_construct(tables=("shop.*",), shadow_tables=SHADOWS)
    assert not feed.enters(shadow)
    assert feed.enters(other)
    assert Feed.model_construct(tables=("shop.*", f"shop.{name}"), shadow_tables=SHADOWS).enters(shadow)
    assert Feed.model_construct(tables=("shop.*",), shadow_tables=()).enters(shadow)
