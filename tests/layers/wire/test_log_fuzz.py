"""Hostile bytes never crash the decoder, and never make it take much memory (see fuzz.py)."""

import resource
from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.errors import CorruptLog
from catchment.model.position import LogOffset
from catchment.wire.log.decoder import LogDecoder
from tests.layers.wire.answers import Session, run
from tests.layers.wire.dumps import end_of_log, read_dump
from tests.layers.wire.events import HEADER, events_of, joined, seal
from tests.layers.wire.fuzz import fuzz, survives
from tests.layers.wire.odd_values import ODD, fill

Recorded = tuple[list[bytes], LogOffset]


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    with PrivateServer(server_id=9, settings={"log_bin_compress_min_len": 64}) as own:
        yield own


@pytest.fixture(scope="module")
def all_types(server: PrivateServer) -> Recorded:
    """Rows with short values of all types."""
    with server.connect(init_command="SET sql_mode = 'ALLOW_INVALID_DATES'") as session:
        run(session, "CREATE DATABASE f")
        fill(session, "f")
        long = [f"c{i} = 'x'" for i, kind in enumerate(ODD) if "text" in kind or "blob" in kind]
        run(session, f"UPDATE f.odd SET {', '.join(long)}")
        return record(server, session, ["UPDATE f.odd SET id = id + 50 LIMIT 4", "DELETE FROM f.odd LIMIT 3"])


@pytest.fixture(scope="module")
def all_groups(server: PrivateServer) -> Recorded:
    """Groups of all sorts over two files, in the end compressed."""
    with server.connect() as session:
        run(session, "CREATE DATABASE g")
        statements = [
            "CREATE TABLE g.k (a int PRIMARY KEY, v varchar(300), s set('a','b'))",
            "BEGIN",
            "INSERT INTO g.k VALUES (1, 'x', 'a'), (2, REPEAT('y', 200), 'a,b')",
            "SAVEPOINT s",
            "UPDATE g.k SET v = 'z'",
            "CREATE TEMPORARY TABLE g.tmp (a int)",
            "ROLLBACK TO s",
            "COMMIT",
            "XA START 'x'",
            "DELETE FROM g.k LIMIT 1",
            "XA END 'x'",
            "XA PREPARE 'x'",
            "XA COMMIT 'x'",
            "SET GLOBAL log_bin_compress = ON",
            "FLUSH BINARY LOGS",
            "INSERT INTO g.k VALUES (3, REPEAT('q', 300), '')",
            "UPDATE g.k SET a = a + 10",
            "CREATE TABLE g.later (a int COMMENT 'long enough to be compressed, long enough')",
            "SET GLOBAL log_bin_compress = OFF",
        ]
        return record(server, session, statements)


def record(server: PrivateServer, session: Session, statements: list[str]) -> Recorded:
    start = end_of_log(server)
    run(session, *statements)
    events = events_of(read_dump(server, start))
    assert survives(joined(events), start, "full", 100) == ""
    return events, start


@pytest.mark.parametrize(
    ("values", "groups"), [(300, 900), pytest.param(2_000, 6_000, marks=pytest.mark.wide)]
)
def test_changed_dumps(all_types: Recorded, all_groups: Recorded, values: int, groups: int) -> None:
    check(fuzz(*all_types, inputs=values, seed=1), values)
    check(fuzz(*all_groups, inputs=groups, seed=2), groups)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 7))
def test_more(all_types: Recorded, all_groups: Recorded, seed: int) -> None:
    check(fuzz(*all_types, inputs=5_000, seed=seed), 5_000)
    check(fuzz(*all_groups, inputs=20_000, seed=seed), 20_000)


@pytest.mark.parametrize("kind", [23, 24, 25])
def test_rows_without_columns(all_groups: Recorded, kind: int) -> None:
    """Images with no columns have no bytes: the bytes that are left are not so many rows, nor endless ones."""
    events, start = all_groups
    i = next(i for i, event in enumerate(events) if event[4] == kind)
    no_columns = bytearray(events[i])
    columns = HEADER + 8
    assert no_columns[columns] == 3
    images = 2 if kind == 24 else 1
    no_columns[columns + 1 : columns + 1 + images] = bytes(images)
    decoder = LogDecoder(start, sparse=True)
    with pytest.raises(CorruptLog, match=rf"log {start.file}:\d+: a row of g\.k is malformed"):
        decoder.feed(joined([*events[:i], seal(no_columns), *events[i + 1 :]]))
    assert sum(images.batch.num_rows for images in decoder.take_images()) <= 10


def check(outcomes: dict[str, int], inputs: int) -> None:
    assert outcomes["CorruptLog"] > inputs // 4
    assert outcomes[""] > inputs // 100  # a changed value may be another value
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20  # KiB


def test_events_cut_short(all_groups: Recorded) -> None:
    """An event without its end, in a packet that is whole."""
    events, start = all_groups
    for kept in range(0, 40, 3):
        for i in (i for i in range(len(events)) if kept < len(events[i])):
            short = [*events[:i], events[i][:kept], *events[i + 1 :]]
            assert survives(joined(short), start, "full", 10) in ("CorruptLog", "Unsupported"), (kept, i)
