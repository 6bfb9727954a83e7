"""Random transactions: the decoder beside mysql-replication on the same log, and beside the tables."""

import datetime as dt
import io
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from catchment.demo.server import PrivateServer
from catchment.model.image import GROUP, OP, SEQ, SIDE
from catchment.model.position import LogOffset
from catchment.model.table import TableId
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import end_of_log, read_dump

Change = tuple[str, dict[str, Any] | None, dict[str, Any] | None]


def value(rng: random.Random) -> str:
    row = [
        str(rng.choice((rng.randrange(-(2**63), 2**63), 0, -1))),
        str(rng.randrange(2**64)),
        f"{rng.randrange(-(10**9), 10**9)}.{rng.randrange(10**4):04}",
        str(rng.randrange(-1000, 1000) / 8),
        repr(rng.uniform(-1e9, 1e9)),
        f"'{''.join(rng.choices('abcäöü€漢 😀', k=rng.randrange(30)))}x'",
        f"x'{rng.randbytes(rng.randrange(300)).hex()}'",
        f"'{rng.choice(('red', 'grün', 'x,y'))}'",
        f"'20{rng.randrange(10, 99)}-0{rng.randrange(1, 10)}-11 12:34:56.{rng.randrange(10**6):06}'",
        f"'19{rng.randrange(10, 99)}-0{rng.randrange(1, 10)}-1{rng.randrange(10)}'",
    ]
    return ", ".join("NULL" if rng.randrange(8) == 0 else cell for cell in row)


def workload(rng: random.Random, session: Session, schema: str) -> None:
    """Random inserts, updates, deletes and key changes in random transactions, some of them undone."""
    for _ in range(120):
        run(session, "BEGIN")
        for _ in range(rng.randrange(1, 5)):
            table = f"{schema}.t{rng.randrange(2)}"
            first = rng.randrange(10**6)
            what = rng.randrange(4)
            if what == 0:
                rows = ", ".join(f"({first + i}, {value(rng)})" for i in range(rng.randrange(1, 30)))
                run(session, f"INSERT IGNORE INTO {table} VALUES {rows}")
            elif what == 1:
                run(
                    session,
                    f"UPDATE {table} SET v = CONCAT('u', LEFT(v, 20)), n = {first} ORDER BY id LIMIT 9",
                )
            elif what == 2:
                run(session, f"UPDATE IGNORE {table} SET id = {first} ORDER BY u LIMIT 1")
            else:
                run(session, f"DELETE FROM {table} ORDER BY f LIMIT {rng.randrange(6)}")
        run(session, "ROLLBACK" if rng.randrange(5) == 0 else "COMMIT")


def changes_of(decoder: LogDecoder) -> list[Change]:
    """Changes in order: table, row before, row after."""
    rows = [
        (row.pop(SEQ), row.pop(SIDE), row.pop(OP), images.table.id.name, row)
        for images in decoder.take_images()
        for row in map(without_group, images.batch.to_pylist())
    ]
    rows.sort(key=lambda found: found[0])
    changes: list[Change] = []
    for _, side, op, table, row in rows:
        if side == 1 and op == 2:
            name, before, _ = changes.pop()
            changes.append((name, before, row))
        else:
            changes.append((table, row, None) if side == 0 else (table, None, row))
    return changes


def without_group(row: dict[str, Any]) -> dict[str, Any]:
    del row[GROUP]
    return row


def changes_by_reference(server: PrivateServer, start: LogOffset, raw: bytes) -> list[Change]:
    """The reference reads the same bytes: they take the place of its connection after its first event."""
    stream = BinLogStreamReader(
        connection_settings=server.login("root"),
        server_id=4712,
        log_file=start.file,
        log_pos=start.offset,
        end_log_pos=end_of_log(server).offset,
        resume_stream=True,
        only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
        is_mariadb=True,
    )
    stream.fetchone()
    connection = stream._stream_connection
    connection._rfile = io.BufferedReader(io.BytesIO(raw))
    connection._next_seq_id = 1
    changes: list[Change] = []
    for event in stream:
        for row in event.rows:
            before = row.get("before_values") or (
                row["values"] if isinstance(event, DeleteRowsEvent) else None
            )
            after = row.get("after_values") or (row["values"] if isinstance(event, WriteRowsEvent) else None)
            changes.append((event.table, before, after))
    stream.close()
    return changes


def plain(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """A row with the reference's own choice of Python types."""
    return row and {
        name: cell.encode() if name == "b" and isinstance(cell, str) else narrowed(cell)
        for name, cell in row.items()
    }


def narrowed(cell: Any) -> Any:
    if isinstance(cell, Decimal) and cell == cell.to_integral_value():
        return int(cell)
    if isinstance(cell, dt.datetime):
        return cell.replace(tzinfo=None)
    return cell


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.wide) for seed in (1, 2))])
def test_random_transactions(
    session: Session, shard: PrivateServer, fresh_schema: Callable[..., str], seed: int
) -> None:
    schema = fresh_schema(shard)
    rng = random.Random(seed)
    start = end_of_log(shard)
    for i in range(2):
        run(
            session,
            f"CREATE TABLE {schema}.t{i} (id bigint PRIMARY KEY, n bigint, u bigint unsigned, "
            "d decimal(20,4), f float, g double, v varchar(200), b varbinary(300), "
            "e enum('red','grün','x,y'), at datetime(6), day date)",
        )
    workload(rng, session, schema)
    raw = read_dump(shard, start)
    wanted = [TableId(schema, "t0"), TableId(schema, "t1")]
    decoder = LogDecoder(start, wanted)
    at = 0
    while at < len(raw):
        size = rng.randrange(1, 20_000)
        decoder.feed(raw[at : at + size])
        at += size
    assert decoder.voids == []
    ours = changes_of(decoder)
    assert len(ours) > 500
    assert [(t, plain(b), plain(a)) for t, b, a in ours] == [
        (t, plain(b), plain(a)) for t, b, a in changes_by_reference(shard, start, raw)
    ]
    for table in wanted:
        assert replayed(ours, table.name) == {
            int(row[0]): row[1]
            for row in run(session, f"SELECT id, CAST(n AS CHAR) FROM {table} ORDER BY id")
        }


def replayed(changes: list[Change], table: str) -> dict[int, str | None]:
    """What the changes leave in a table: id and n."""
    left: dict[int, str | None] = {}
    for name, before, after in changes:
        if name != table:
            continue
        if before is not None:
            assert left.pop(before["id"]) == text(before["n"])
        if after is not None:
            left[after["id"]] = text(after["n"])
    return dict(sorted(left.items()))


def text(number: int | None) -> str | None:
    return None if number is None else str(number)
