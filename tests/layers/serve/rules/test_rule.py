"""Which tables a rule is for, and what is refused of what a person writes."""

import re
import subprocess
import sys

import pytest

from catchment.model.errors import ConfigError
from catchment.model.table import Column, ColumnType, Kind, Table, TableId
from catchment.serve.rules.rule import Rule, first_of
from catchment.serve.rules.selection import compiled

ORDERS = TableId("shop", "orders")
TABLE = Table(
    ORDERS,
    (
        Column("id", ColumnType(Kind.INT)),
        Column("ub", ColumnType(Kind.BIGINT, unsigned=True)),
        Column("d", ColumnType(Kind.DECIMAL, length=38, scale=2)),
        Column("long", ColumnType(Kind.DECIMAL, length=65)),
        Column("f", ColumnType(Kind.FLOAT)),
        Column("t", ColumnType(Kind.TEXT, charset="utf8mb4")),
        Column("l", ColumnType(Kind.TEXT, charset="latin1")),
        Column("bl", ColumnType(Kind.BLOB)),
        Column("dy", ColumnType(Kind.DATE)),
        Column("dt", ColumnType(Kind.DATETIME, scale=6)),
        Column("y", ColumnType(Kind.YEAR)),
        Column("j", ColumnType(Kind.JSON)),
        Column("b", ColumnType(Kind.BIT, length=3)),
    ),
    ("id",),
)


@pytest.mark.parametrize(
    ("match", "takes"),
    [
        ("shop.orders", ["shop.orders"]),
        ("orders", ["old.orders", "shop.orders"]),
        ("ord*", ["old.orders", "shop.orders"]),
        ("shop.*", ["shop.items", "shop.orders"]),
        ("*", ["old.orders", "shop.items", "shop.orders"]),
        ("*.items", ["shop.items"]),
        ("/.*/", ["old.orders", "shop.items", "shop.orders"]),
        ("/shop[.]o.*/", ["shop.orders"]),
        (r"/.*\.(orders|items)/", ["old.orders", "shop.items", "shop.orders"]),
        ("/.*order/", []),
        ("/o[a-z]+.*/", ["old.orders"]),
        ("ORDERS", []),
    ],
)
def test_tables_of_a_rule(match: str, takes: list[str]) -> None:
    tables = ["old.orders", "shop.items", "shop.orders", "mysql.user"]
    assert [name for name in tables if Rule(match).takes(TableId.parse(name))] == takes


def test_the_first_rule_that_takes_a_table_counts() -> None:
    rules = [Rule("shop.secret", "exclude"), Rule("orders", "-80"), Rule("shop.*"), Rule("shop.orders")]
    assert first_of(rules, ORDERS) == rules[1]
    assert first_of(rules, TableId("shop", "items")) == rules[2]
    assert first_of(rules, TableId("shop", "secret")) is None
    assert first_of(rules, TableId("old", "items")) is None
    assert first_of([], ORDERS) is None


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (("",), "match is empty"),
        (("!shop.orders",), "filter: exclude"),
        (("/(/",), "is not a regular expression"),
        (("shop.",), "is not of the form schema.table"),
        (("orders", "", 0, 0), "index 0 of 0 is no slice"),
        (("orders", "", 4, 4), "index 4 of 4 is no slice"),
        (("orders", "", 4, -1), "index -1 of 4 is no slice"),
        (("orders", "", 65537, 1), "of is 1 to 65536"),
        (("orders", "exclude", 2, 0), "has no slices"),
        (("orders", "-8"), "two digits each"),
        (("orders", "select * from items"), "reads FROM items"),
        (("shop.orders", "select * from old.orders"), "reads FROM old.orders"),
        (("shop.*", "select * from orders"), "a SELECT is for one table"),
        (("/.*orders/", "select * from orders"), "a SELECT is for one table"),
    ],
)
def test_what_is_no_rule(rule: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Rule(*rule)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("update orders set id = 1", "is one SELECT"),
        ("select 1; select 2", "is one SELECT"),
        ("selec", "is one SELECT"),
        ("select (", "cannot be read"),
        ("select 'a", "cannot be read"),
        ("select 1 as one", "FROM names one table"),
        ("select distinct id from orders", "DISTINCT stands in no filter"),
        ("select id from orders group by id", "GROUP BY stands in no filter"),
        ("select id from orders having id", "HAVING stands in no filter"),
        ("select id from orders order by id", "ORDER BY stands in no filter"),
        ("select id from orders limit 1", "LIMIT stands in no filter"),
        ("select id from orders, items", "a join stands in no filter"),
        ("select id from orders join items using (id)", "a join stands in no filter"),
        ("with q as (select 1) select id from orders", "WITH stands in no filter"),
        ("select id from orders for update", "a lock stands in no filter"),
        ("select id from orders union select 1 from orders", "is one SELECT"),
        ("select sql_no_cache id from orders", "stands in no filter"),
        ("select id from (select 1) orders", "FROM names one table"),
        ("select id from orders partition (p)", "FROM names one table and nothing else"),
        ("select id from orders use index (x)", "FROM names one table and nothing else"),
        ("select id from orders /* hi */", "comments stand in no filter"),
        ("select id from orders -- hi", "comments stand in no filter"),
        ("select id from orders /*! where id */", "comments stand in no filter"),
        (r"select id from orders where t like 'a\%'", "a backslash means"),
        ("select id from orders where t || 'a'", "|| means OR or CONCAT"),
    ],
)
def test_statements_that_are_no_filter(sql: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        Rule("orders", sql)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("nosuch", "shop.orders has no column nosuch; it has id, ub,"),
        ("items.id", "items.id is no column of shop.orders"),
        ("count(*)", "COUNT(*) is not known here"),
        ("sum(id) over ()", "is not known here"),
        ("now()", "NOW() is not known here"),
        ("rand()", "is not known here"),
        ("@a", "is not known here"),
        ("?", "is not known here"),
        ("id & 1", "is not known here"),
        ("t regexp 'a'", "is not known here"),
        ("j->'$.a'", "is not known here"),
        ("dt + interval 1 day", "is not known here"),
        ("(select 1)", "is not known here"),
        ("exists(select 1)", "is not known here"),
        ("id in (select 1)", "list the values themselves"),
        ("(id, d) = (1, 2)", "is not known here"),
        ("id = 1 = 1", "put parentheses around id = 1"),
        ("id between 1 and 2 = 1", "put parentheses around"),
        ("id = not id", "put parentheses around"),
        ("id = '1'", "the server would convert one"),
        ("id = dy", "the server would convert one"),
        ("not f", "column f is no condition; compare it with something"),
        ("t and d", "column t is no condition"),
        ("dt in ('2026-01-31', null)", "take moments and times that the filter says"),
        ("dy between dt and '2026-01-31'", "take moments and times that the filter says"),
        ("id in (id, id + 1)", "compare with each by = and OR"),
        ("id between ub and 3", "BETWEEN of a BIGINT UNSIGNED and of numbers with a sign"),
        ("(dy <=> dy) is not null", "is never NULL"),
        ("t = 1", "the server would convert one"),
        ("id in (1, 'a')", "must be of one type"),
        ("ub in (1e0, 2.0, id)", "CAST all AS DOUBLE"),
        ("t = 'a'", "write CAST(t AS BINARY) = ..., or t COLLATE utf8mb4_bin = ..."),
        ("t in ('a')", "CAST(t AS BINARY) IN"),
        ("t like 'a%'", "CAST(t AS BINARY) LIKE"),
        ("t collate utf8mb4_general_ci = 'a'", "write COLLATE utf8mb4_bin"),
        ("t collate latin1_bin = 'a'", "write COLLATE utf8mb4_bin"),
        ("l collate latin1_bin < 'a'", "write CONVERT(... USING utf8mb4)"),
        ("cast(l as binary) = 'a'", "write CONVERT(... USING utf8mb4)"),
        ("length(l)", "write CONVERT(... USING utf8mb4)"),
        ("t collate utf8mb4_bin < t", "CAST(... AS BINARY) of both"),
        ("'a' = 'a'", "a collation that is not known here decides"),
        ("t collate utf8mb4_bin like t", "LIKE takes a pattern that is written"),
        ("lower(t)", "depend on its collation"),
        ("y > 2000", "write CAST(... AS SIGNED) of a YEAR"),
        ("j = 'a'", "values of that type are not compared here"),
        ("long > 1", "values of that type are not compared here"),
        ("dy > '2026-1-1'", "is no date; write one such as '2026-01-31'"),
        ("dy > '2026-02-30'", "stands in no calendar"),
        ("dt > 'today'", "is no moment"),
        ("id / 2", "write CAST(... AS DOUBLE)"),
        ("d * d", "digits, and a column holds 38"),
        ("ub % 2", "not for BIGINT UNSIGNED"),
        ("t + 1", "+ is for numbers"),
        ("concat(b)", "write CAST(... AS UNSIGNED) of a BIT"),
        ("concat(f)", "CAST AS CHAR in CONCAT is for"),
        ("coalesce(f, 0)", "write CAST(... AS DOUBLE)"),
        ("if(id, 1, 'a')", "the server would convert one"),
        ("coalesce(null, null)", "it is NULL in any case"),
        ("substring(t, id)", "write it as an integer"),
        ("trim(both 'x' from t)", "says more than is known here"),
        ("cast(t as signed)", "CAST AS SIGNED is for"),
        ("cast(dt as datetime)", "write DATETIME(6)"),
        ("cast(t as json)", "CAST AS JSON is not known here"),
        ("convert(t using latin1)", "only CONVERT(... USING utf8mb4)"),
        ("year(id)", "YEAR is for dates and moments"),
        ("in_keyrange(id)", "write in_keyrange('-80')"),
        ("in_keyrange(id, 'hash', '8')", "is no range of keyspace ids"),
        ("in_keyrange(t, 'hash', '-80')", "for it there is xxhash, binary"),
        ("in_keyrange(t, 'unicode_loose_md5', '-80')", "vindex unicode_loose_md5 is not known here"),
        ("1" * 40, "has more than 38 digits"),
    ],
)
def test_expressions_that_are_refused(expression: str, said: str) -> None:
    """As a column and as a condition, with the table and the filter."""
    rules = [
        Rule("orders", f"select {expression} as q from orders"),
        Rule("orders", f"select id from orders where {expression}"),
    ]
    for rule in rules:
        with pytest.raises(ConfigError, match=re.escape(said)) as raised:
            compiled(rule, TABLE)
        assert "table shop.orders" in str(raised.value)
        assert str(raised.value).endswith(rule.filter)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("id + 1", "id + 1 has no name; write AS"),
        ("id, ID", "two columns of the result have the name id"),
        ("*, id", "two columns of the result have the name id"),
        ("null as q", "q is NULL in any case"),
        ("id as `q `", "begins or ends with a space"),
        ("items.*", "items.* is no column"),
    ],
)
def test_columns_that_are_refused(given: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        compiled(Rule("orders", f"select {given} from orders"), TABLE)


@pytest.mark.wide
def test_rules_without_a_select_import_no_sqlglot() -> None:
    """It takes half a second."""
    script = """
import sys
from catchment.model.table import Table, TableId, Column, ColumnType, Kind
from catchment.serve.rules.rule import Rule
from catchment.serve.rules.selection import compiled
table = Table(TableId('shop', 'orders'), (Column('id', ColumnType(Kind.INT)),), ('id',))
for rule in (Rule('*'), Rule('orders', '-80'), Rule('orders', '', 2, 1), Rule('orders', 'exclude')):
    compiled(rule, table)
print('sqlglot' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
