"""Rules: which tables a feed takes."""

import re

import pytest
import yaml

from catchment.config import takes
from catchment.config.table_patterns import check_rules, exclusion, name_in, pattern_of, table_in
from catchment.model.errors import ConfigError
from catchment.model.table import TableId
from catchment.serve.rules.rule import Rule


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
        (["/.*\\.log_.*/"], "shop.log_2026", True),
        (["/.*\\.log_[0-9]+/"], "shop.log_2026", True),
        (["/shop[.]log_[0-9]+/"], "shop.log_2026", True),
        (["/log_.*/"], "shop.log_2026", False),  # the whole of schema.table, wherever the regex has a dot
        (["/log_.+/"], "log_1.t", True),
        (["/(?i)SHOP\\.Orders/"], "shop.orders", True),
        (["/shop.a|b/"], "shop.b", False),
        (["orders"], "shop.orders", True),
        (["ord*", "!old.*"], "old.orders", False),
        (["ord*", "!old.*"], "shop.orders", True),
        (["*", "!log_*"], "shop.log_1", False),
        (["user"], "mysql.user", False),
        (["shop.a[*]"], "shop.ab", False),
        (["shop.a[*]"], "shop.a*", True),
        (["/.*/"], "information_schema.tables", False),
        (["mysql.user"], "mysql.user", False),
    ],
)
def test_selects(rules: list[str], table: str, taken: bool) -> None:
    assert takes(rules, TableId.parse(table)) is taken


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (
            "/orders|items/",
            r"has no dot: a regular expression is compared with the whole of schema.table; write "
            r"/.*\.(orders|items)/",
        ),
        ("/log_[0-9]+/", "has no dot"),
        ("/.*\\.(?!tmp_).*/", "not a regular expression of RE2, which has no lookaround"),
        ("/(.)\\.\\1/", "not a regular expression of RE2, which has no lookaround"),
        ("/.*)(.*/", "not a regular expression of RE2"),
        ("/\\Qshop.a/", "not a regular expression of RE2"),  # it would quote what closes it
        ("/shop.orders", "end it with a slash"),
        ("shop.", "is not of the form"),
        (".orders", "is not of the form"),
        ("", "an empty text is not of the form"),
        ("!", "an empty text is not of the form"),
    ],
)
def test_what_is_no_pattern(pattern: str, said: str) -> None:
    """The same in a feed file and in a rule of a stream, before anything is read."""
    with pytest.raises(ValueError, match=re.escape(said)):
        check_rules(("shop.*", pattern))
    if pattern.strip("!"):
        with pytest.raises(ConfigError, match=re.escape(said)):
            Rule(pattern)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("shop.orders", "shop.orders"),
        ("orders", "orders"),
        ("shop.a.b", "shop.a.b"),
        ("shop.a[*]b[[]c[?]", "shop.a*b[c?"),
        ("shop.a]", "shop.a]"),
        ("shop.*", None),
        ("shop.a[bc]", None),
        ("/shop.orders/", None),
        ("!shop.orders", None),
    ],
)
def test_a_name_is_a_pattern_for_one_table(pattern: str, name: str | None) -> None:
    assert name_in(pattern) == name


@pytest.mark.parametrize("text", ["orders", "shop.*", "/shop.a/"])
def test_commands_take_the_name_of_one_table(text: str) -> None:
    assert table_in(pattern_of(TableId("shop", "a*"))) == TableId("shop", "a*")
    with pytest.raises(ValueError, match="schema"):
        table_in(text)


def test_an_exclusion_to_paste_takes_out_one_table_alone() -> None:
    for name in ("orders", 'e"f', "a[b]c*d?e", "x\\y", "p#q: r", "{}", "tab\tx", "ünï"):
        (rule,) = yaml.safe_load(exclusion(TableId("shop", name)))
        assert takes(["shop.*"], TableId("shop", name))
        assert not takes(["shop.*", rule], TableId("shop", name)), name
        assert takes(["shop.*", rule], TableId("shop", f"{name}2")), name
