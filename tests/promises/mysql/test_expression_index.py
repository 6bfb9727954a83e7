"""Indexes over expressions, whose hidden columns the log of MySQL 8.0 shows and its row images lack; invisible keys."""

import re
from collections.abc import Callable

import pytest

from catchment.model.errors import Unsupported
from catchment.model.image import SIDE
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.catalog import read_table
from catchment.source.session import connect
from catchment.wire.log.facts import PartialImage, Unreadable
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.test_metadata_levels import T, defined
from tests.world.servers.builds import Build
from tests.world.servers.launch import PrivateMySQL

INDEXED = "(id INT PRIMARY KEY, v VARCHAR(9), w INT, UNIQUE KEY a ((id + w * 1000)), KEY b ((w + 1), (concat(v, 'x'))))"


@pytest.mark.parametrize("fixture", ["mysql_server", "mysql_97_server"])
def test_rows_lack_the_hidden_columns_alone(
    fixture: str, request: pytest.FixtureRequest, fresh_schema: Callable[..., str]
) -> None:
    server: PrivateMySQL = request.getfixturevalue(fixture)
    schema = fresh_schema(server)
    table = TableId(schema, "t")
    server.sql(f"CREATE TABLE {table} {INDEXED}")
    start = end_of_log(server)
    server.sql(
        f"INSERT INTO {table} VALUES (1, 'a', 1), (2, NULL, 2)",
        f"UPDATE {table} SET v = 'b'",
        f"UPDATE {table} SET id = 9 WHERE id = 2",
        f"DELETE FROM {table} WHERE id = 1",
        f"ALTER TABLE {table} ADD z INT",
        "SET binlog_row_image = MINIMAL",
        f"UPDATE {table} SET z = 3",
    )
    raw = read_dump(server, start)
    for before in ("full", "key"):
        decoder = decoded(raw, start, wanted=[table], before=before)
        (lacking,) = [fact for fact in decoder.facts if isinstance(fact, PartialImage)]
        assert (lacking.before, lacking.after) == (("id",), ("z",))
        (images,) = decoder.take_images()
        rows = [(row[SIDE], row["id"], row["v"], row["w"]) for row in images.batch.to_pylist()]
        after = [row for row in rows if row[0]]
        assert after == [(1, 1, "a", 1), (1, 2, None, 2), (1, 1, "b", 1), (1, 2, "b", 2), (1, 9, "b", 2)]
        gone = [row[1] for row in rows if not row[0]]
        assert gone[-2:] == [2, 1]


def test_without_names_the_way_out_is_told(mysql_80_build: Build) -> None:
    with PrivateMySQL(mysql_80_build, server_id=9, settings={"binlog_row_metadata": "MINIMAL"}) as server:
        server.sql("CREATE DATABASE m", f"CREATE TABLE m.t {INDEXED}")
        start = end_of_log(server)
        server.sql("INSERT INTO m.t VALUES (1, 'a', 1)")
        decoder = decoded(read_dump(server, start), start, wanted=[T], definitions={T: defined(server)})
        (found,) = (fact for fact in decoder.facts if isinstance(fact, Unreadable))
        assert re.search(r"index over an expression.*set binlog_row_metadata=FULL", found.why)


def test_a_column_that_is_named_as_hidden_ones_is_refused(
    mysql_server: PrivateMySQL, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(mysql_server)
    mysql_server.sql(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, `{'0a' * 16}` INT)")
    endpoint = Endpoint("s", mysql_server.host, mysql_server.port, "catchment", mysql_server.password)
    with (
        connect(endpoint) as session,
        pytest.raises(Unsupported, match=r"t, column 0a0a.* rename the column or exclude the table"),
    ):
        read_table(session, TableId(schema, "t"))
