"""Rules: which tables a feed takes."""

import pytest
import yaml

from catchment.config import takes
from catchment.config.table_patterns import exclusion
from catchment.model.table import TableId


@pytest.mark.parametrize(
    ("rules", "table", "taken"),
    [
        (["shop.orders"], "shop.orders", True),
        (["shop.orders"], "shop.Orders", False),
        (["shop.orders"], "shop.orders2", False),
        (["shop.*"], "shop.orders", True),
        (["shop.*"], "shopping.orders", False),
        (["*.orders"], "a.orders", True),
        (["sh*.o?ders"], "shop.orders", True),
        (["shop.*"], "shop.a.b", True),  # a table's name may hold dots
        (["s*.b"], "shop.a.b", False),
        (["/shop\\.(orders|items)/"], "shop.items", True),
        (["/shop\\.(orders|items)/"], "shop.items2", False),
        (["/.*/"], "shop.items", True),
        (["shop.*", "!shop.tmp_*"], "shop.tmp_1", False),
        (["!shop.tmp_*", "shop.*"], "shop.tmp_1", False),
        (["shop.*", "!/.*_old/"], "shop.items_old", False),
        (["shop.*", "!shop.tmp_*"], "shop.orders", True),
        (["*.*"], "mysql.user", False),
        (["/.*/"], "information_schema.tables", False),
        (["mysql.user"], "mysql.user", False),
    ],
)
def test_selects(rules: list[str], table: str, taken: bool) -> None:
    assert takes(rules, TableId.parse(table)) is taken


def test_an_exclusion_to_paste_takes_out_one_table_alone() -> None:
    for name in ("orders", 'e"f', "a[b]c*d?e", "x\\y", "p#q: r", "{}", "tab\tx", "ünï"):
        (rule,) = yaml.safe_load(exclusion(TableId("shop", name)))
        assert takes(["shop.*"], TableId("shop", name))
        assert not takes(["shop.*", rule], TableId("shop", name)), name
        assert takes(["shop.*", rule], TableId("shop", f"{name}2")), name
