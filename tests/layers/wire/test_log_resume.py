"""A decoder that goes on with the bytes of a second dump."""

from collections.abc import Callable

from catchment.demo.server import PrivateServer
from catchment.model.table import TableId
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import decoded, end_of_log, read_dump
from tests.layers.wire.test_log_groups import insert, kept, kinds
from tests.world.checkpoints import ended_by_checkpoint


def test_a_dump_that_goes_on_where_another_ended(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    table = TableId(fresh_schema(shard), "t")
    run(session, f"CREATE TABLE {table} (id int PRIMARY KEY)")
    start = end_of_log(shard)
    run(session, insert(table, 1))
    decoder = decoded(read_dump(shard, start), start)
    assert decoder.ended
    for step, statements in enumerate(
        ([insert(table, 2)], ["FLUSH BINARY LOGS", insert(table, 3)], ["DO 0"])
    ):
        run(session, *statements)
        ended_by_checkpoint(shard)  # none comes behind this place
        at = decoder.at
        decoder.resume()
        assert not decoder.ended
        decoder.feed(read_dump(shard, at))
        assert decoder.ended
        assert decoder.at == end_of_log(shard)
        assert len(decoder.files) == 1 + (step > 0)
    assert kept(decoder) == [1, 2, 3]
    assert len(kinds(decoder)) == 3
