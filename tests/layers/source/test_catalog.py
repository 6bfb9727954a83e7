"""Tables as the catalog has them: asked for one by one or a schema at a time, they are the same."""

from collections.abc import Callable

import pytest

from catchment.model.errors import Unsupported
from catchment.model.source import Endpoint
from catchment.model.table import Table, TableId
from catchment.source.catalog import listed_tables, read_table
from catchment.source.declared import read_tables
from catchment.source.session import Session, connect

SERVERS = [
    "shard",
    "mysql_server",
    *(pytest.param(name, marks=pytest.mark.wide) for name in ("mysql_97_server", "mariadb_11_server")),
]
TABLES = (
    "CREATE TABLE plain (id INT PRIMARY KEY, b VARCHAR(9) CHARSET latin1, c ENUM('x', 'y'))",
    "CREATE TABLE swapped (a INT, b INT, c INT, PRIMARY KEY (c, a), UNIQUE (b))",
    "CREATE TABLE prefixed (a VARCHAR(99) NOT NULL, b TEXT, PRIMARY KEY (a(3)))",
    "CREATE TABLE later (z INT NOT NULL, a INT NOT NULL, b INT, UNIQUE second (b), UNIQUE first (a), UNIQUE third (z))",
    "CREATE TABLE parts (a VARCHAR(9) NOT NULL, b INT NOT NULL, UNIQUE one (a(2)), UNIQUE two (b, a))",
    "CREATE TABLE keyless (a INT, UNIQUE (a))",
    "CREATE TABLE `odd ``name.` (`the ``key` INT PRIMARY KEY)",
    "CREATE TABLE computed (id INT PRIMARY KEY, v INT AS (id + 1) STORED)",
    "CREATE TABLE empty_label (e ENUM('', 'a') PRIMARY KEY)",
    "CREATE TABLE Case_Of (Id INT PRIMARY KEY)",
)


def one_by_one(session: Session, table: TableId) -> Table | str:
    try:
        return read_table(session, table)
    except Unsupported as why:
        return str(why)


@pytest.mark.parametrize("fixture", SERVERS)
def test_a_schema_at_a_time_is_as_one_by_one(
    fixture: str, request: pytest.FixtureRequest, fresh_schema: Callable[..., str]
) -> None:
    server = request.getfixturevalue(fixture)
    schema, other = fresh_schema(server), fresh_schema(server)
    server.sql(*TABLES, database=schema)
    server.sql("CREATE TABLE plain (other INT PRIMARY KEY)", database=other)
    with connect(Endpoint("s", server.host, server.port, "catchment", server.password)) as session:
        tables = [*listed_tables(session, lambda table: table.schema in (schema, other))]
        assert len(tables) == len(TABLES) + 1
        gone = TableId(schema, "gone")
        wanted = {table: one_by_one(session, table) for table in (*tables, gone)}
        found = read_tables(session, [*tables, gone])
        assert {table: one if isinstance(one, Table) else str(one) for table, one in found.items()} == wanted
        few = [TableId(schema, "later"), gone]
        assert [str(one) for one in read_tables(session, few).values()] == [
            str(wanted[one]) for one in sorted(few)
        ]
    assert sum(isinstance(one, Table) for one in found.values()) >= 7


def test_many_tables_cost_few_statements(
    shard: object,
    request: pytest.FixtureRequest,
    fresh_schema: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = request.getfixturevalue("shard")
    schema = fresh_schema(server)
    server.sql(*(f"CREATE TABLE t{n} (id INT PRIMARY KEY)" for n in range(40)), database=schema)
    asked: list[str] = []
    rows = Session.rows

    def counted(session: Session, query: str, *args: object) -> object:
        asked.append(query)
        return rows(session, query, *args)  # type: ignore[arg-type]

    with connect(Endpoint("s", server.host, server.port, "catchment", server.password)) as session:
        monkeypatch.setattr(Session, "rows", counted)
        found = read_tables(session, [TableId(schema, f"t{n}") for n in range(40)])
    assert len(found) == 40
    assert len(asked) <= 3, asked
