"""Where a feed begins, beside writers: which rows its copy has to bring, and which the log does."""

from collections.abc import Callable
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.shard import Copy
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source import first_cut, pinned

AFTER = {
    "rows that went away": "DELETE FROM t WHERE id > 5",
    "all rows that went away": "TRUNCATE TABLE t",
    "nothing": "UPDATE t SET v = 2 WHERE id = 3",
}


def begun_before(
    shard: PrivateServer, schema: str, monkeypatch: pytest.MonkeyPatch, write: Callable[[], object]
) -> Copy:
    """How a feed begins with a table of the keys 3, 5 and 9, where somebody writes between its cut and its SELECT."""
    shard.sql(
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (3, 1), (5, 1), (9, 1)",
        "UPDATE t SET v = 2 WHERE id = 3",
        database=schema,
    )
    real: Any = first_cut.first_position

    def then_written(session: Any) -> Any:
        position = real(session)
        write()
        return position

    monkeypatch.setattr(first_cut, "first_position", then_written)
    endpoint = Endpoint("s", shard.host, shard.port, "catchment", shard.password)
    origin = first_cut.origin_of(endpoint, lambda table: table.schema == schema, reserved=())
    (copy,) = origin.state.copies
    assert copy.table == TableId(schema, "t")
    return copy


@pytest.mark.parametrize("after", AFTER)
def test_keys_that_went_between_the_cut_and_the_select_are_no_later_ones(
    shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """The largest key is asked for after the cut. At the cut it may have been another one, whose row is copied."""
    schema = fresh_schema(shard)

    def write() -> None:
        shard.sql(AFTER[after], "INSERT INTO t VALUES (4, 1)", database=schema)

    copy = begun_before(shard, schema, monkeypatch, write)
    assert not copy.done
    assert copy.born_after == ((9,) if after == "nothing" else None)


def test_rows_that_cannot_be_read_may_have_been_the_last_ones(
    shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row image without all columns is not decoded, so it is not known that key 9 went."""
    schema = fresh_schema(shard)

    def write() -> None:
        with shard.connect(database=schema, autocommit=True) as writer:
            writer.cursor().execute("SET SESSION binlog_row_image = MINIMAL")
            writer.cursor().execute("UPDATE t SET id = 7 WHERE id = 9")

    assert begun_before(shard, schema, monkeypatch, write).born_after is None


def test_a_table_that_somebody_has_locked_keeps_no_other_from_its_begin(
    shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pinned._PINNED, "lock_wait_timeout", "1")
    schema = fresh_schema(shard)
    shard.sql(*(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in ("a", "b")), database=schema)
    shard.sql(*(f"INSERT INTO {name} VALUES (7)" for name in ("a", "b")), database=schema)
    endpoint = Endpoint("s", shard.host, shard.port, "catchment", shard.password)
    with shard.connect() as holder:
        holder.cursor().execute(f"LOCK TABLES {schema}.a WRITE")
        origin = first_cut.origin_of(endpoint, lambda table: table.schema == schema, reserved=())
    begun = {copy.table.name: copy for copy in origin.state.copies}
    assert not begun["a"].done
    assert begun["a"].born_after is None, "rows that come later are copied"
    assert begun["b"].born_after == (7,)
