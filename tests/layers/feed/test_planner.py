"""Chunks against real tables whose keys mislead: none is much larger than was asked for."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from catchment import world
from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.epoch.work import ChunkReceipt, CopiedChunk
from catchment.feed import chunk_steps as walk_module
from catchment.feed.chunk_steps import CHUNKS_PER_GROUP, FIRST_ROWS, ROWS_MIN, SHRINK, Pace, Walk
from catchment.feed.planner import Limits, Planner
from catchment.feed.sessions import Sessions
from catchment.model.budget import Allowance
from catchment.model.chunk import Bound, Chunk, chunk_key
from catchment.model.cut import Tick
from catchment.model.epoch import Manifest, TableShape
from catchment.model.errors import Retry, ServerSaid, SourceError
from catchment.model.foreign_key import Does, ForeignKey
from catchment.model.position import LogOffset
from catchment.model.shard import Copy, ShardState
from catchment.model.source import Endpoint
from catchment.model.table import TableId
from catchment.source.bounds import MARK, key_after, where
from catchment.source.first_cut import originate
from catchment.source.session import Session, connect

ROWS_MAX = 1_000
LOG_BUDGET = 1 << 20
# 0 to 3124, without a sequence engine, which MySQL lacks.
DIGITS = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"
NUMBERS = (
    "(SELECT a.d + 5*b.d + 25*c.d + 125*e.d + 625*f.d AS n "
    f"FROM {DIGITS} a, {DIGITS} b, {DIGITS} c, {DIGITS} e, {DIGITS} f) numbers"
)
COUNT = 3_125


def endpoint_of(server: PrivateServer) -> Endpoint:
    return Endpoint("a", server.host, server.port, FEED_USER, server.password)


def begun(server: PrivateServer, schema: str) -> Manifest:
    return originate("f", {"a": endpoint_of(server)}, lambda table: table.schema == schema, 0)


def sizes(server: PrivateServer, schema: str, pace: Callable[[], Pace]) -> dict[str, list[int]]:
    """Rows of every chunk of every table, as a feed would begin to copy them."""
    endpoint = endpoint_of(server)
    manifest = begun(server, schema)
    shapes = {shape.table: shape for shape in manifest.shapes}
    found: dict[str, list[int]] = {}
    with connect(endpoint) as session, session.cursor() as cursor:
        for copy in manifest.cut.copies:
            key = chunk_key(shapes[copy.table].definition)
            walk = Walk(session, "a", copy, key, pace())
            rows = found[copy.table.name] = []
            while (step := walk.step()) is not None:
                condition, values = where(key, step[0].lo, step[0].hi)
                cursor.execute(
                    f"SELECT COUNT(*) FROM {copy.table}{condition}".replace(MARK, "%s"), values or None
                )
                (count,) = cursor.fetchone() or (0,)
                rows.append(int(count))
    return found


def test_no_chunk_is_much_larger_than_asked_for(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    shard.sql(
        f"USE {schema}",
        "CREATE TABLE plain (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO plain SELECT n, 1 FROM {NUMBERS}",
        "CREATE TABLE tenants (tenant INT, id INT, PRIMARY KEY (tenant, id))",
        f"INSERT INTO tenants SELECT 1 + n % 2, n FROM {NUMBERS}",
        "CREATE TABLE sentinel (id BIGINT PRIMARY KEY, v INT)",
        f"INSERT INTO sentinel SELECT n, 1 FROM {NUMBERS}",
        "INSERT INTO sentinel VALUES (9223372036854775807, 0)",
        "CREATE TABLE stale (id BIGINT PRIMARY KEY, v INT) STATS_PERSISTENT=1, STATS_AUTO_RECALC=0",
        "ANALYZE TABLE stale",
        f"INSERT INTO stale SELECT n * n * n * 1000, 1 FROM {NUMBERS}",
        "ANALYZE TABLE plain, tenants, sentinel",
    )
    found = sizes(shard, schema, lambda: Pace(rows=ROWS_MAX))
    assert {table: sum(rows) for table, rows in found.items()} == {
        "plain": COUNT, "tenants": COUNT, "sentinel": COUNT + 1, "stale": COUNT,
    }  # fmt: skip
    assert {table: max(rows) for table, rows in found.items() if max(rows) > 2 * ROWS_MAX} == {}
    assert all(len(rows) <= 8 for rows in found.values()), found


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[TableId]:
    """The tables along whose index a walk went."""
    walks: list[TableId] = []

    def walked(session: Session, table: TableId, *rest: Any) -> Bound | None:
        walks.append(table)
        return key_after(session, table, *rest)

    monkeypatch.setattr(walk_module, "key_after", walked)
    return walks


def test_keys_of_several_columns_are_stepped_over_by_the_first(
    shard: PrivateServer, fresh_schema: Callable[..., str], walks: list[TableId]
) -> None:
    """A walk along the index reads all that a SELECT will read."""
    schema = fresh_schema(shard)
    shard.sql(
        f"USE {schema}",
        "CREATE TABLE parts (line INT, part INT, PRIMARY KEY (line, part))",
        f"INSERT INTO parts SELECT n DIV 5 * 3 - 900, n % 5 FROM {NUMBERS}",
        "CREATE TABLE days (line INT, day DATE, name VARCHAR(9), PRIMARY KEY (line, day, name))",
        f"INSERT INTO days SELECT n DIV 5, '2026-01-01' + INTERVAL n % 5 DAY, 'x' FROM {NUMBERS}",
        "CREATE TABLE large (line INT, part INT, PRIMARY KEY (line, part))",
        f"INSERT INTO large SELECT IF(n BETWEEN 100 AND 2900, 50, n DIV 5), n FROM {NUMBERS}",
        "ANALYZE TABLE parts, days, large",
    )
    found = sizes(shard, schema, lambda: Pace(rows=ROWS_MAX))
    assert {table: sum(rows) for table, rows in found.items()} == dict.fromkeys(found, COUNT)
    assert all(max(rows) <= 2 * ROWS_MAX for rows in found.values()), found
    assert {table.name for table in walks} == {"large"}


def test_a_step_over_most_of_a_table_is_asked_for_in_parts(
    shard: PrivateServer, fresh_schema: Callable[..., str], walks: list[TableId]
) -> None:
    """The server's estimate of it is cut off at half of the table. One of its parts may hold all the rows."""
    schema = fresh_schema(shard)
    shard.sql(
        f"USE {schema}",
        "CREATE TABLE even (id INT PRIMARY KEY)",
        f"INSERT INTO even SELECT n * 64 + m FROM {NUMBERS}, (SELECT n AS m FROM {NUMBERS} WHERE n < 64) few",
        "CREATE TABLE crowded (id INT PRIMARY KEY)",
        "INSERT INTO crowded SELECT IF(id < 190000, id, id * 1000) FROM even",
        "ANALYZE TABLE even, crowded",
    )
    found = sizes(shard, schema, lambda: Pace(rows=110_000))
    assert {table: sum(rows) for table, rows in found.items()} == dict.fromkeys(found, 64 * COUNT)
    assert all(max(rows) <= 2 * 110_000 for rows in found.values()), found
    assert {table.name for table in walks} == {"crowded"}


def test_long_rows_make_short_chunks(
    shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "CHUNK_BYTES_MAX", 4_000_000)
    schema = fresh_schema(shard)
    shard.sql(
        f"USE {schema}",
        "CREATE TABLE wide (id INT PRIMARY KEY, b LONGBLOB)",
        "INSERT INTO wide VALUES " + ", ".join(f"({n}, REPEAT('x', 500000))" for n in range(20)),
        "ANALYZE TABLE wide",
    )
    found = sizes(shard, schema, Pace)["wide"]
    assert sum(found) == 20
    assert 2 < max(found) * 500_000 <= 2 * 4_000_000


def test_a_floor_in_an_older_file_is_as_far_as_the_files_are_long(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    shard.sql(f"USE {schema}", "CREATE TABLE t (id INT PRIMARY KEY, v TEXT)", "INSERT INTO t VALUES (1, '')")
    manifest = begun(shard, schema)
    floor = manifest.cut.shards["a"].floor
    shard.sql(f"INSERT INTO {schema}.t VALUES (2, REPEAT('x', 60000))")
    written = shard.log_end()[1] - floor.offset
    assert written > 60_000
    shard.sql("FLUSH BINARY LOGS", f"UPDATE {schema}.t SET v = REPEAT('y', 60000)", "FLUSH BINARY LOGS")
    now = LogOffset(*shard.log_end())
    assert now.number == floor.number + 2
    tick = Tick(manifest.epoch + 1, 0, 0, {"a": now})

    def planned(budget: int) -> list[tuple[Chunk, ...]]:
        planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, ROWS_MAX, 2, budget))
        groups = planner.groups(manifest.cut, manifest.shapes, tick)
        assert planner.floor_lag["a"] > 240_000 - 60_000
        assert [*planner.held] == ["a"] * (not groups)
        return groups

    assert planned(100_000) == []
    assert planned(LOG_BUDGET) != []


def of_numbers(server: PrivateServer, schema: str) -> tuple[Manifest, Tick]:
    """The first cut of a table of COUNT rows, and a tick behind it."""
    server.sql(
        f"USE {schema}",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO t SELECT n, 1 FROM {NUMBERS}",
        "ANALYZE TABLE t",
    )
    manifest = begun(server, schema)
    return manifest, Tick(manifest.epoch + 1, 0, 0, {"a": LogOffset(*server.log_end())})


class _Few(Sessions):
    """What a run has that may read so many groups at a time."""

    def __init__(self, groups: int) -> None:
        self._groups = groups

    def groups(self, shard: str) -> int:
        return self._groups


def test_with_few_sessions_fewer_chunks_are_planned(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    manifest, tick = of_numbers(shard, fresh_schema(shard))

    def planned(sessions: Sessions | None) -> list[int]:
        limits = Limits(0.5, 100, 4, LOG_BUDGET)
        planner = Planner({"a": endpoint_of(shard)}, limits, sessions=sessions)
        return [len(group) for group in planner.groups(manifest.cut, manifest.shapes, tick)]

    assert (len(planned(None)), len(planned(_Few(4)))) == (4, 4)
    assert len(planned(_Few(1))) == 1
    assert 0 < sum(planned(_Few(1))) < sum(planned(_Few(4))) / 2


def test_a_group_of_small_chunks_reads_for_the_time_of_a_group(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    """A chunk of 100 rows took 10 ms, so 50 ms are five of them; of what is not known a group has three."""
    manifest, tick = of_numbers(shard, fresh_schema(shard))
    planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, 100, 2, LOG_BUDGET, group_seconds=0.05))

    def planned() -> list[Chunk]:
        groups = planner.groups(manifest.cut, manifest.shapes, tick)
        return [chunk for group in groups for chunk in group]

    first = planned()
    assert len(first) == 2 * CHUNKS_PER_GROUP
    for _ in range(20):
        planner.learn(ChunkReceipt("a", (CopiedChunk(first[0], 100, 1000, 0.01),), (), (), 0))
    assert len(planned()) == 2 * 5


def test_a_tree_is_planned_as_a_whole_or_as_other_tables(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    manifest, tick = of_numbers(shard, fresh_schema(shard))
    (shape,), state = manifest.shapes, manifest.cut.shards["a"]
    key = ForeignKey("f", shape.table, ("n",), shape.table, ("id",), on_delete=Does.FOLLOW)
    bare = with_fields(state, keys=(key,), copies=(Copy(shape.table),))

    def planned(of: ShardState, trees: int) -> list[tuple[Chunk, ...]]:
        planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, 100, 2, LOG_BUDGET, trees=trees))
        return planner.groups(with_fields(manifest.cut, shards={"a": of}), manifest.shapes, tick)

    (whole,) = planned(bare, 2 * COUNT)
    assert (whole[0].lo, whole[-1].hi, whole[-1].last) == (None, None, True)
    assert len(whole) > 2 * CHUNKS_PER_GROUP
    usual = [2 * CHUNKS_PER_GROUP // 2] * 2
    assert [len(group) for group in planned(bare, COUNT // 2)] == usual, "it is large"
    assert [len(group) for group in planned(with_fields(state, keys=(key,)), 2 * COUNT)] == usual, (
        "rows follow the log"
    )
    assert [len(group) for group in planned(with_fields(bare, keys=()), 2 * COUNT)] == usual, "it is no tree"


def test_beside_a_table_that_is_followed_an_epoch_copies_what_the_interval_has_time_for(
    shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full groups have 20 chunks each. One of the 40 takes a quarter of a second, so a second has time for three."""
    schema = fresh_schema(shard)
    shard.sql(f"CREATE TABLE {schema}.empty (id INT PRIMARY KEY)")
    manifest, tick = of_numbers(shard, schema)
    table = TableId(schema, "t")
    alone = [shape for shape in manifest.shapes if shape.table == table]
    clock = [0.0]
    monkeypatch.setattr(world, "steady_seconds", lambda: clock[0])
    planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, 100, 2, LOG_BUDGET, group_seconds=0.2))
    learnt = ChunkReceipt("a", (CopiedChunk(Chunk("a", table, None, None), 100, 1000, 0.01),), (), (), 0)
    for _ in range(20):
        planner.learn(learnt)

    def planned(shapes: Sequence[TableShape], interval: float) -> int:
        planner.turn(idle=False, interval=interval)
        return sum(len(group) for group in planner.groups(manifest.cut, shapes, tick))

    beside = manifest.shapes
    assert planned(alone, 1.0) >= 30
    assert planned(beside, 1.0) == 1
    clock[0] += 0.25
    planner.read()
    assert planned(beside, 1.0) in (3, 4)
    assert planned(beside, 4.0) in (13, 14)
    clock[0] += 40.0
    planner.read()
    assert planned(beside, 1.0) == 1
    for _ in range(12):
        clock[0] += 0.01
        planner.read()
        found = planned(beside, 1.0)
    assert found >= 30


def test_what_full_groups_take_is_known_when_they_become_larger(
    shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a first copy runs alone, its groups grow: what small ones took says nothing of large ones."""
    schema = fresh_schema(shard)
    shard.sql(f"CREATE TABLE {schema}.empty (id INT PRIMARY KEY)")
    manifest, tick = of_numbers(shard, schema)
    clock = [0.0]
    monkeypatch.setattr(world, "steady_seconds", lambda: clock[0])
    planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, 100, 2, LOG_BUDGET, group_seconds=0.2))
    copying = [shape for shape in manifest.shapes if shape.table.name == "t"]

    def planned(shapes: Sequence[TableShape]) -> list[Chunk]:
        planner.turn(idle=False, interval=1.0)
        groups = planner.groups(manifest.cut, shapes, tick)
        return [chunk for group in groups for chunk in group]

    def read(chunks: Sequence[Chunk]) -> None:
        clock[0] += 0.1 * len(chunks)
        copied = tuple(CopiedChunk(chunk, 100, 1000, 0.01) for chunk in chunks)
        planner.learn(ChunkReceipt("a", copied, (), (), 0))
        planner.read()

    first = planned(copying)
    read(first)
    assert len(planned(copying)) > 3 * len(first)
    read(planned(manifest.shapes))  # the least, which shows that an epoch has time for more
    assert len(planned(manifest.shapes)) in range(7, 11)


def test_a_table_with_too_many_changes_gets_smaller_chunks_and_no_other_does(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    shard.sql(
        f"CREATE TABLE {schema}.beside (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.beside SELECT n FROM {NUMBERS} WHERE n < 150",
    )
    manifest, tick = of_numbers(shard, schema)
    planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, 100, 2, LOG_BUDGET))

    def first() -> dict[str, Chunk]:
        groups = planner.groups(manifest.cut, manifest.shapes, tick)
        chunks = [chunk for group in groups for chunk in group]
        return {chunk.table.name: chunk for chunk in reversed(chunks)}

    before = first()
    changed = before["t"]
    planner.learn(ChunkReceipt("a", (), (), ((changed, "too many"),), 0, frozenset({changed.table})))
    after = first()
    assert ends(after["t"]) < ends(before["t"])
    assert ends(after["beside"]) == ends(before["beside"])


def ends(chunk: Chunk) -> int:
    """The last key that may be in it."""
    assert chunk.hi is not None
    return int(chunk.hi[0])


@pytest.mark.parametrize("code", [1205, 1317, 1969, 3024])
def test_a_step_that_takes_too_long_is_tried_later_with_fewer_rows(
    code: int, shard: PrivateServer, fresh_schema: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tables are planned meanwhile, and this one too once a step of it comes to its end."""
    schema = fresh_schema(shard)
    for name in ("first", "slow", "third"):
        shard.sql(
            f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY)", f"INSERT INTO {schema}.{name} VALUES (1)"
        )
    manifest = begun(shard, schema)
    tick = Tick(manifest.epoch + 1, 0, 0, {"a": manifest.cut.positions["a"].at})
    asked: list[int] = []
    step = Walk.step

    def slow(walk: Walk, allowance: Allowance) -> tuple[Chunk, int] | None:
        if walk.of.table.name != "slow" or len(asked) == 5:
            return step(walk, allowance)
        asked.append(walk.pace.wanted())
        raise ServerSaid(code, "took too long")

    monkeypatch.setattr(Walk, "step", slow)
    planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, FIRST_ROWS, 2, LOG_BUDGET))

    def planned() -> list[str]:
        groups = planner.groups(manifest.cut, manifest.shapes, tick)
        return [chunk.table.name for group in groups for chunk in group]

    for _ in range(5):
        assert planned() == ["first", "third"]
        assert list(planner.unplanned) == [("a", TableId(schema, "slow"))]
    assert (asked[0], asked[1], asked[-1]) == (FIRST_ROWS, FIRST_ROWS // SHRINK, ROWS_MIN)
    assert planned() == ["first", "slow", "third"]
    assert not planner.unplanned


def test_a_table_that_is_gone_or_shut_keeps_no_other_from_being_planned(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    for name in ("gone", "renamed", "stays"):
        shard.sql(
            f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY)", f"INSERT INTO {schema}.{name} VALUES (1)"
        )
    manifest = begun(shard, schema)
    tick = Tick(manifest.epoch + 1, 0, 0, {"a": manifest.cut.positions["a"].at})
    shard.sql(f"DROP TABLE {schema}.gone", f"ALTER TABLE {schema}.renamed CHANGE id ident INT")
    planner = Planner({"a": endpoint_of(shard)}, Limits(0.5, FIRST_ROWS, 2, LOG_BUDGET))
    groups = planner.groups(manifest.cut, manifest.shapes, tick)
    assert [chunk.table.name for group in groups for chunk in group] == ["stays"]
    assert [(table.name, error.retry) for (_, table), error in planner.unplanned.items()] == [
        ("gone", Retry.NEVER),
        ("renamed", Retry.NEVER),
    ]
    with pytest.raises(SourceError, match="1146"):
        planner.raise_refused()


def test_a_table_that_is_read_whole_for_each_chunk_gets_no_smaller_chunks(
    shard: PrivateServer, fresh_schema: Callable[..., str]
) -> None:
    schema = fresh_schema(shard)
    labels = ", ".join(f"'l{n}'" for n in range(20))
    shard.sql(
        f"CREATE TABLE {schema}.many (s SET({labels}) PRIMARY KEY)",
        f"CREATE TABLE {schema}.few (s SET('a', 'b') PRIMARY KEY)",
    )
    manifest = begun(shard, schema)
    asked = {}
    with connect(endpoint_of(shard)) as session:
        for shape, copy in zip(manifest.shapes, manifest.cut.copies, strict=True):
            walk = Walk(session, "a", copy, chunk_key(shape.definition), Pace())
            chunk = Chunk("a", shape.table, None, None)
            for _ in range(20):
                walk.pace.learn(CopiedChunk(chunk, walk.pace.rows, 0, 60.0), 0.5, 1 << 30)
                walk.pace.shrink()
            asked[shape.table.name] = walk.pace.rows
    assert asked == {"many": FIRST_ROWS, "few": ROWS_MIN}
