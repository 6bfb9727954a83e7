"""Generated columns: servers whose log leaves them out of changes are known, and such a table is refused there."""

from collections.abc import Callable
from contextlib import closing

import pytest

from catchment.model.errors import Unsupported
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.catalog import read_table
from catchment.source.session import connect
from catchment.wire.log.facts import PartialImage
from tests.layers.wire.answers import run
from tests.layers.wire.dumps import decoded, end_of_log, read_dump

SERVERS = [
    "shard",
    "mysql_server",
    *(pytest.param(name, marks=pytest.mark.wide) for name in ("mysql_97_server", "mariadb_11_server")),
]


@pytest.mark.parametrize("fixture", SERVERS)
def test_what_the_log_lacks_is_refused_and_nothing_else(
    fixture: str, request: pytest.FixtureRequest, fresh_schema: Callable[..., str]
) -> None:
    server = request.getfixturevalue(fixture)
    table = TableId(fresh_schema(server), "t")
    with closing(server.connect()) as writer:
        run(
            writer,
            f"CREATE TABLE {table} (id INT PRIMARY KEY, a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a + 2) STORED)",
            f"INSERT INTO {table} (id, a) VALUES (1, 1), (2, 2)",
        )
        start = end_of_log(server)
        run(writer, f"UPDATE {table} SET a = 5 WHERE id = 1")
    facts = decoded(read_dump(server, start), start, wanted=[table], sparse=True).facts
    lacking = [fact for fact in facts if isinstance(fact, PartialImage)]
    with connect(Endpoint("s", server.host, server.port, "catchment", server.password)) as session:
        assert session.leaves_generated_out is bool(lacking), server.sql("SELECT VERSION()")
        if lacking:
            assert lacking[0].after == ("id", "a")
            with pytest.raises(Unsupported, match=r"leaves generated columns out of UPDATE \(v, s\)"):
                read_table(session, table)
        else:
            assert [column.name for column in read_table(session, table).columns] == ["id", "a", "v", "s"]
