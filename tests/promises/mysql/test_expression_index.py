"""Indexes over expressions, whose hidden columns the log of MySQL 8.0 shows and its row images lack; invisible keys."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.api.read import read
from catchment.doctor import Severity, examine
from catchment.feed.verify import verify
from catchment.model.errors import AlteredUnseen, Unsupported
from catchment.model.image import SIDE
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.serve.spark_source.driver import read_shape
from catchment.source.catalog import read_table
from catchment.source.session import connect
from catchment.wire.log.facts import PartialImage
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.test_metadata_levels import T, defined
from tests.promises.exact.feedrun import FeedRun, make_feed
from tests.world.engines import on_spark
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
        with pytest.raises(AlteredUnseen, match=r"index over an expression.*set binlog_row_metadata=FULL"):
            decoded(read_dump(server, start), start, wanted=[T], definitions={T: defined(server)})


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


@pytest.mark.parametrize(
    ("fixture", "settings"),
    [
        ("mysql_80_build", {}),
        (
            "mysql_97_build",
            {
                "sql_generate_invisible_primary_key": "ON",
                "show_gipk_in_create_table_and_information_schema": "OFF",
            },
        ),
    ],
    ids=["8.0", "9.7, invisible keys"],
)
def test_a_feed(
    fixture: str,
    settings: dict[str, str | int],
    request: pytest.FixtureRequest,
    spark: SparkContext,
    tmp_path: Path,
) -> None:
    build: Build = request.getfixturevalue(fixture)
    with PrivateMySQL(build, settings=settings) as server:
        key = "INT NOT NULL" if settings else "INT PRIMARY KEY"
        server.sql(
            "CREATE DATABASE d",
            f"CREATE TABLE d.t (id {key}, v INT, KEY a ((v * 2)), KEY b ((id + 1)))",
            "INSERT INTO d.t SELECT seq, seq FROM d.seq_1_to_900",
        )
        feed = make_feed(tmp_path, {"a": server}, "d", chunk_rows=200)
        assert [f for f in examine(feed).findings if f.severity is Severity.ERROR] == []
        with FeedRun(feed) as run:
            for number in range(20):
                server.sql(
                    f"UPDATE d.t SET v = -{number} WHERE id BETWEEN {number * 45} AND {number * 45 + 60}",
                    f"DELETE FROM d.t WHERE id = {number * 41}",
                    f"INSERT INTO d.t (id, v) VALUES ({1000 + number}, 7)",
                )
            run.wait("all is copied", lambda epochs: epochs[-1].cut.copied)
            server.sql("ALTER TABLE d.t ADD COLUMN n INT", "UPDATE d.t SET n = v WHERE id > 500")
            run.wait_for_log({"a": server})
        endpoints = {endpoint.shard: endpoint for endpoint in feed.endpoints()}
        assert read_shape(endpoints, TableId("d", "t")).key == (("my_row_id",) if settings else ("id",))
        names = [*(["my_row_id"] if settings else []), "id", "v", "n"]
        rows = read(feed, "d.t").polars().to_arrow()
        found = zip(*(rows.column(name).to_pylist() for name in names), strict=True)
        wanted = server.sql(f"SELECT {', '.join(names)} FROM d.t")
        assert sorted(tuple(None if x is None else int(x) for x in row) for row in found) == sorted(wanted)
        assert set(rows.column_names) - {"_shard", "_epoch"} == set(names)
        verdict = verify(feed, endpoints, on_spark(spark))
        assert verdict.differences == 0, verdict.found
