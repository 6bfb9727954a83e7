"""A TRUNCATE that stands in the log and waits for a replica: no SELECT gives the rows that it takes (DESIGN 4)."""

from collections.abc import Callable

import pymysql
from pymysql.constants import ER

from catchment.demo.server import PrivateServer
from tests.world.held import held_commit


def test_no_select_gives_rows_of_a_truncate_that_is_logged(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    """So a chunk whose epoch has the statement was read behind it: SELECT waits for its metadata lock."""
    schema = fresh_schema(shard)
    shard.sql(f"USE {schema}", "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    held = held_commit(shard, "TRUNCATE t", database=schema)
    waited = 0
    while held.held and waited < 3:
        with shard.connect(database=schema, init_command="SET lock_wait_timeout = 1") as connection:
            cursor = connection.cursor()
            try:
                cursor.execute("SELECT id FROM t")
            except pymysql.err.OperationalError as error:
                if error.args[0] != ER.LOCK_WAIT_TIMEOUT:
                    raise
                waited += 1
            else:
                assert cursor.fetchall() == ()
                break
    held.release()
    assert shard.sql(f"SELECT id FROM {schema}.t") == []
