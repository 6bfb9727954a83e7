"""Numbers of tables in the log: each opening of a table gives it a new one."""

from collections.abc import Callable

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.test_log_groups import kinds


def test_more_table_numbers_than_are_kept_in_mind(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    run(
        session,
        f"CREATE TABLE {schema}.a (id int PRIMARY KEY, x int)",
        f"CREATE TABLE {schema}.b (id int PRIMARY KEY, x int)",
        f"INSERT INTO {schema}.a VALUES (1, 0)",
        f"INSERT INTO {schema}.b VALUES (1, 0)",
    )
    start = end_of_log(shard)
    times = 4200  # wire/log/met_tables.py keeps 4096; FLUSH TABLES has `b` opened anew, under another number
    for n in range(times):
        run(
            session,
            f"FLUSH LOCAL TABLES {schema}.b",
            f"UPDATE {schema}.a JOIN {schema}.b USING (id) SET a.x = {n + 1}, b.x = {n + 1}",
        )
    decoder = decoded(read_dump(shard, start), start, wanted={TableId(schema, "a"), TableId(schema, "b")})
    assert len(kinds(decoder)) == times
    assert [images.batch.num_rows for images in decoder.take_images()] == [2 * times] * 2
