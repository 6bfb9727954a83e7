"""What DDL makes of rows is SELECTed behind it; what the log has behind the DDL must not be in there."""

import threading
from collections.abc import Callable

import pytest
from pymysql.err import OperationalError

from catchment.demo.server import PrivateServer
from catchment.demo.writers import Session
from tests.promises.storm.replay import Marked, Replay, Rows
from tests.world.canonical import canonical_row
from tests.world.prepared import prepare

XID = "'between'"
_UNKNOWN = 1397


def commit(shard: PrivateServer) -> None:
    """Commit the transaction, unless somebody has."""
    try:
        shard.sql(f"XA COMMIT {XID}")
    except OperationalError as error:
        if error.args[0] != _UNKNOWN:
            raise


class Hurried(Marked):
    """Rows are SELECTed when what is prepared has just been committed."""

    def __init__(self, shard: PrivateServer, table: str) -> None:
        super().__init__({table: ("id",)})
        self._shard = shard

    def _rows(self, session: Session, table: str) -> Rows:
        commit(self._shard)
        return super()._rows(session, table)


# No row changes by them: so MariaDB does not wait for the transaction, whose session is gone.
@pytest.mark.parametrize("statement", ["ALTER TABLE t ALTER n SET DEFAULT 5", "ANALYZE TABLE t"])
def test_a_transaction_that_was_prepared_before_ddl(
    shard: PrivateServer, fresh_schema: Callable[..., str], statement: str
) -> None:
    schema = fresh_schema(shard)
    table = f"{schema}.t"
    shard.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)", f"INSERT INTO {table} VALUES (1, 1)")
    marked = Hurried(shard, table)
    replay = Replay.from_rest(shard.login(), {table: ("id",)})
    assert isinstance(replay, Replay)
    replay.follow({table: ("id",)}, marked)
    prepare(shard, XID, f"UPDATE {table} SET n = 7")
    later = threading.Timer(0.3, commit, [shard])
    later.start()
    marked.run(shard, table, statement)
    later.join()
    assert list(replay.advance_to_end()[table].values()) == [canonical_row({"id": 1, "n": 7})]
