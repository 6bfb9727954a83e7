"""Rows that are SELECTed in front of the cut, on a real log: what is not visible between the marks, and cuts that lie
in front of the SELECT."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace as with_fields

from catchment.demo.server import PrivateServer
from catchment.epoch.evidence import Marks, SnapshotAt
from catchment.epoch.staging import StageReceipt, StageTask
from catchment.epoch.work import ChunkTask, StagedGroup, Target
from catchment.epoch.xa import prepared_after
from catchment.model.chunk import Chunk
from catchment.model.epoch import TableShape
from catchment.model.errors import CutMissed
from catchment.model.position import LogOffset, Xid
from catchment.model.shard import ShardState
from catchment.model.source import Endpoint
from catchment.model.strategy import Strategy
from catchment.model.table import TableId
from catchment.readers.copy import GroupRows, read_group
from catchment.readers.stage import run_stage
from catchment.sink.delta.tail.writer import LakeWriter
from catchment.source.first_cut import originate
from catchment.source.log import read_facts
from catchment.source.marks import make_marks, marks_session
from catchment.source.select import select_chunk
from tests.promises.exact.feedrun import make_feed
from tests.world.marks import marks_allowed
from tests.world.prepared import prepare
from tests.world.stages import MemoryStage

pytestmark = pytest.mark.mariadb("marks and snapshots are of MariaDB alone")

ROWS = 20
XID = "X'61',X'',1"
BOTH = pytest.mark.parametrize("strategy", [Strategy.WATERMARK, Strategy.SNAPSHOT])


@dataclass
class Staged:
    """One table of a shard, to be copied in one chunk."""

    server: PrivateServer
    schema: str
    endpoint: Endpoint
    state: ShardState
    shapes: tuple[TableShape, ...]
    marks: TableId
    stage: MemoryStage

    @property
    def end(self) -> LogOffset:
        return LogOffset(*self.server.log_end())

    @property
    def chunk(self) -> Chunk:
        return Chunk("-80", self.shapes[0].table, None, None, last=True)

    def stands_at_the_end(self) -> None:
        """As an epoch up to here leaves the shard."""
        stretch = read_facts(self.endpoint, None, self.state.position.at, self.end)
        prepared = prepared_after("-80", (), stretch.xa, self.state.sealed)
        position = with_fields(self.state.position, at=self.end, prepared=prepared, event=None)
        self.state = with_fields(self.state, position=position)

    def selected(self, strategy: Strategy) -> StageReceipt:
        task = StageTask(
            self.endpoint,
            self.state.position.server,
            strategy,
            (self.chunk,),
            self.shapes,
            self.stage,
            "staged",
            "f",
            self.marks,
            self.state.sealed,
            self.state.position.at,
        )
        receipt = run_stage(task)
        assert isinstance(receipt, StageReceipt), receipt
        return receipt

    def group_at(self, receipt: StageReceipt, cut: LogOffset) -> GroupRows:
        """What the group is at a cut."""
        floor = receipt.evidence.floor(self.state)
        assert floor is not None
        group = StagedGroup(self.stage, floor, receipt.tables, receipt.refused, receipt.evidence, self.marks)
        target = Target(LakeWriter(Path("nowhere")), ("-80",), 1, "x")
        task = ChunkTask(
            self.endpoint,
            self.state,
            floor,
            cut,
            (self.chunk,),
            self.shapes,
            target,
            asks=False,
            staged=group,
        )
        return read_group(task)

    def rows_at(self, receipt: StageReceipt, cut: LogOffset) -> dict[int, int]:
        """The rows of the table, none of which is refused."""
        group = self.group_at(receipt, cut)
        assert group.refused == ()
        (rows,) = group.rows.values()
        return dict(zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True))

    def source(self) -> dict[int, int]:
        return {int(key): int(n) for key, n in self.server.sql(f"SELECT id, n FROM {self.schema}.t")}


@pytest.fixture
def staged(shard: PrivateServer, fresh_schema: Callable[..., str], tmp_path: Path) -> Staged:
    schema = fresh_schema(shard)
    marks = TableId.parse(marks_allowed([shard], fresh_schema(shard)))
    shard.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT)", database=schema)
    shard.sql(f"INSERT INTO t SELECT seq, seq FROM seq_1_to_{ROWS}", "DO 0", database=schema)
    (endpoint,) = make_feed(tmp_path, {"-80": shard}, schema, chunk_rows=ROWS).endpoints()
    with marks_session(endpoint) as session:
        make_marks(session, marks)
    shard.sql(f"INSERT INTO {schema}.t VALUES (0, 0)")
    origin = originate("f", {"-80": endpoint}, lambda table: table.schema == schema, 0)
    return Staged(shard, schema, endpoint, origin.cut.shards["-80"], origin.shapes, marks, MemoryStage())


def change_while_selected(staged: Staged, monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    """Have statements run behind the SELECT of a chunk, in front of what ends its group."""

    def then(*args: Any) -> pa.Table:
        rows = select_chunk(*args)
        staged.server.sql(*statements, database=staged.schema)
        return rows

    monkeypatch.setattr("catchment.readers.selected.select_chunk", then)


@BOTH
def test_the_log_takes_the_place_of_rows_that_it_touches(
    staged: Staged, monkeypatch: pytest.MonkeyPatch, strategy: Strategy
) -> None:
    staged.stands_at_the_end()
    change_while_selected(
        staged,
        monkeypatch,
        "UPDATE t SET n = -n WHERE id < 5",
        "DELETE FROM t WHERE id = 7",
        "UPDATE t SET id = 99 WHERE id = 8",
    )
    receipt = staged.selected(strategy)
    staged.server.sql("UPDATE t SET n = 1000 WHERE id = 3", database=staged.schema)
    (held,) = staged.stage.held.values()
    assert pc.sum(held["n"]).as_py() == sum(range(ROWS + 1)), "as they were"
    assert staged.rows_at(receipt, staged.end) == staged.source()


def test_a_cut_between_the_marks_does_not_count(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    cuts: list[LogOffset] = []
    before = staged.end

    def then(*args: Any) -> pa.Table:
        cuts.append(staged.end)
        staged.server.sql("UPDATE t SET n = -1 WHERE id = 1", database=staged.schema)
        return select_chunk(*args)

    monkeypatch.setattr("catchment.readers.selected.select_chunk", then)
    receipt = staged.selected(Strategy.WATERMARK)
    with pytest.raises(CutMissed, match="the high mark does not stand in the log"):
        staged.rows_at(receipt, cuts[0])
    with pytest.raises(CutMissed, match="the low mark does not stand in the log"):
        staged.rows_at(receipt, before)
    assert staged.rows_at(receipt, staged.end) == staged.source()


def test_a_cut_in_front_of_the_snapshot_does_not_count(staged: Staged) -> None:
    before = staged.end
    staged.server.sql("UPDATE t SET n = -1 WHERE id = 1", database=staged.schema)
    receipt = staged.selected(Strategy.SNAPSHOT)
    assert isinstance(receipt.evidence, SnapshotAt)
    with pytest.raises(CutMissed, match="lies in front of the snapshot"):
        staged.rows_at(receipt, before)
    assert staged.rows_at(receipt, staged.end) == staged.source()


DDL = (
    "TRUNCATE TABLE t",
    "ALTER TABLE t ADD m INT DEFAULT 3",
    "DROP TABLE t, gone",
    "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, n INT)",
)


@BOTH
@pytest.mark.parametrize("statement", DDL)
def test_ddl_behind_the_select_refuses_the_chunk(
    staged: Staged, monkeypatch: pytest.MonkeyPatch, strategy: Strategy, statement: str
) -> None:
    staged.server.sql("CREATE TABLE gone (id INT)", database=staged.schema)
    staged.stands_at_the_end()
    receipt = staged.selected(strategy)
    staged.server.sql(statement, "DROP TABLE IF EXISTS gone", database=staged.schema)
    group = staged.group_at(receipt, staged.end)
    assert not group.rows
    assert [chunk.table for chunk, _ in group.refused] == [staged.chunk.table]


@BOTH
def test_a_truncate_in_front_of_the_select_counts(staged: Staged, strategy: Strategy) -> None:
    staged.stands_at_the_end()
    statements = "UPDATE t SET n = -1", "TRUNCATE TABLE t", "INSERT INTO t VALUES (3, 4)"
    staged.server.sql(*statements, database=staged.schema)
    receipt = staged.selected(strategy)
    if strategy is Strategy.SNAPSHOT:
        # Where it was taken is told on credit, so only what lies in front of the last cut lies in front of it.
        assert staged.group_at(receipt, staged.end).refused
        staged.stands_at_the_end()
        receipt = staged.selected(strategy)
    staged.server.sql("INSERT INTO t VALUES (5, 6)", database=staged.schema)
    assert staged.rows_at(receipt, staged.end) == {3: 4, 5: 6}


def test_a_snapshot_whose_place_runs_ahead_of_the_log_counts_no_truncate_as_seen(staged: Staged) -> None:
    """As FLUSH BINARY LOGS beside a held commit makes it do: the new file's name, and the old one's offset."""
    staged.stands_at_the_end()
    receipt = staged.selected(Strategy.SNAPSHOT)
    staged.server.sql("TRUNCATE TABLE t", "INSERT INTO t VALUES (3, 4)", database=staged.schema)
    torn = replace(receipt, evidence=SnapshotAt(staged.end))
    assert staged.group_at(torn, staged.end).refused


def test_an_xa_commit_that_xa_recover_lists_stands_behind_the_floor(
    staged: Staged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the log in front of the last cut, and the SELECT does not show it: that lasts for a moment, which the
    test makes longer."""
    prepare(staged.server, XID, f"UPDATE {staged.schema}.t SET n = 500 WHERE id = 5")
    staged.server.sql(f"XA COMMIT {XID}")
    staged.stands_at_the_end()
    (committed,) = staged.state.position.prepared

    def hidden(*args: Any) -> pa.Table:
        rows = select_chunk(*args)
        at = rows.schema.get_field_index("n")
        n = pc.if_else(pc.equal(rows["id"], 5), pa.scalar(5, pa.int32()), rows["n"])
        return rows.set_column(at, rows.schema.field(at), n)

    monkeypatch.setattr("catchment.readers.selected.select_chunk", hidden)
    monkeypatch.setattr("catchment.readers.stage.open_xa", lambda session: [Xid(1, b"a", b"")])
    receipt = staged.selected(Strategy.WATERMARK)
    assert receipt.evidence.floor(staged.state) == committed.committed
    assert staged.rows_at(receipt, staged.end) == staged.source()
    # Without what XA RECOVER said, the row is lost.
    assert isinstance(receipt.evidence, Marks)
    unasked = replace(receipt, evidence=replace(receipt.evidence, listed=()))
    assert staged.rows_at(unasked, staged.end) == staged.source() | {5: 5}


@BOTH
def test_rows_of_xa_count_where_they_are_committed(
    staged: Staged, monkeypatch: pytest.MonkeyPatch, strategy: Strategy
) -> None:
    """Prepared in front of the last cut and committed while rows are read, behind it, or never."""
    names = [f"X'{number:02x}',X'',1" for number in range(3)]
    for number, name in enumerate(names):
        prepare(staged.server, name, f"UPDATE {staged.schema}.t SET n = -1 WHERE id = {number}")
    try:
        staged.stands_at_the_end()
        change_while_selected(staged, monkeypatch, f"XA COMMIT {names[0]}")
        receipt = staged.selected(strategy)
        staged.server.sql(f"XA COMMIT {names[1]}")
        assert staged.rows_at(receipt, staged.end) == staged.source()
        assert staged.source()[0] == staged.source()[1] == -1
    finally:
        staged.server.sql(f"XA ROLLBACK {names[2]}")
