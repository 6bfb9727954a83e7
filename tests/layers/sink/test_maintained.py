"""Plain tables that other programs optimize and vacuum, between settles and joins of ours at random."""

import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from msgspec.structs import replace

import catchment
from catchment.model.arrangement import Arrangement, Partition, Span
from catchment.model.errors import SinkError
from catchment.model.treatment import Mode
from catchment.sink.delta.log import checkpoint
from catchment.sink.delta.log.delta_log import DeltaLog
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.plain.unneeded import present
from tests.layers.sink.test_arranged import TABLE, Arranged
from tests.layers.sink.test_kept import ending
from tests.layers.sink.test_model import SHAPES
from tests.layers.sink.test_modes import Kept
from tests.layers.sink.test_settle import Rows, Settling, by_delta_rs
from tests.world.delta_scan import DeltaScan
from tests.world.foreign import Manner, optimize


class Maintained(Settling):
    """A table that others maintain, too. `readable`: the first version of which no vacuum has taken files."""

    readable = 0

    def maintain(self, step: Callable[[Path], object]) -> None:
        """What others do changes no row, in however many versions."""
        before = max(self.exact, default=None)
        if before is None:
            return
        step(self.plain)
        for version in range(before + 1, DeltaTable(self.plain).version() + 1):
            self.exact[version] = self.exact[before]

    def vacuum_at_once(self, rng: random.Random) -> None:
        """Of all that the newest version does not need. A join that is prepared would lose its file."""
        while self.prepared:
            self.commit_join()
        self.maintain(lambda path: _vacuumed(path, rng, hours=0))
        self.readable = max(self.exact, default=0)

    def must_be_exact_for_all(self) -> None:
        """Every version that has its files, for delta-rs; some for DuckDB."""
        versions = [version for version in self.exact if version >= self.readable]
        names = [field.name for field in DeltaTable(self.plain).schema().fields]
        for version in versions:
            rows = by_delta_rs(self.plain, version)
            assert _rows(rows.select(names)) == self.expected(version), version
        with DeltaScan() as scan:
            for version in random.Random(0).sample(versions, min(8, len(versions))):
                assert _rows(scan.rows(self.plain, names, version)) == self.expected(version), version


def _rows(table: pa.Table) -> Rows:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def _vacuumed(path: Path, rng: random.Random, hours: int | None = None) -> list[str]:
    full = rng.random() < 0.5
    found = DeltaTable(path).vacuum(hours, dry_run=True, enforce_retention_duration=False, full=full)
    DeltaTable(path).vacuum(hours, dry_run=False, enforce_retention_duration=False, full=full)
    return list(found)


def _step(world: Maintained, rng: random.Random) -> Callable[[Path], object]:
    manner = Manner.any(rng)
    return rng.choice(
        (
            lambda path: DeltaTable(path).optimize.compact(),
            lambda path: DeltaTable(path).optimize.z_order(list(world.lake.shape.key)),
            lambda path: optimize(path, rng, manner),
            lambda path: _vacuumed(path, rng),
            lambda path: DeltaTable(path).create_checkpoint(),
        )
    )


WITHOUT = Form(vectors=False)
IN_ORDER = Arrangement(cluster_by=("customer",))
FIRST, SECOND = ("pair", Form()), ("datetime", WITHOUT)
MORE = [(kind, form) for kind in SHAPES for form in (Form(), WITHOUT) if (kind, form) not in (FIRST, SECOND)]


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        FIRST,
        pytest.param(*SECOND, marks=pytest.mark.wide),
        *(pytest.param(*one, marks=pytest.mark.long) for one in MORE),
    ],
    ids=str,
)
def test_every_version_is_exact(tmp_path: Path, kind: str, form: Form) -> None:
    rng = random.Random(f"{kind} {form}")
    world = Maintained(tmp_path, kind, form)
    for _ in range(4):
        world.turn(rng, 2)
        world.prepare_join(rng)  # its sources may be gone when it is committed
        world.maintain(_step(world, rng))
    world.turn(rng, 2)
    world.must_be_exact_for_all()
    before = len(world.exact)
    for _ in range(2):
        world.vacuum_at_once(rng)
        world.turn(rng, 3)
        world.maintain(_step(world, rng))
    assert len(world.exact) > before
    assert world.joins > 3
    world.must_be_exact_for_all()


def test_files_that_others_wrote_are_joined(tmp_path: Path) -> None:
    """Their names are written in the log as addresses, which a blank in one shows."""
    rng = random.Random(1)
    world = Maintained(tmp_path, "pair")
    world.turn(rng, 6)
    world.maintain(lambda path: optimize(path, rng, Manner()))
    world.prepare_join(rng)
    joins = world.joins
    world.commit_join()
    assert world.joins > joins
    world.must_be_exact_for_all()


def test_a_file_whose_rows_no_log_tells_may_be_gone(tmp_path: Path) -> None:
    """The log names it for days after it was replaced and deleted."""
    rng = random.Random(2)
    world = Maintained(tmp_path, "pair")
    world.turn(rng, 6)
    world.maintain(lambda path: optimize(path, rng, Manner(counts=False)))
    on = DeltaLog(world.plain).newest()
    assert on is not None
    assert sum(file.rows for file in on.files.values()) == len(world.exact[on.version])
    world.maintain(lambda path: optimize(path, rng, Manner(counts=False)))
    for path in on.files:
        (world.plain / path).unlink()
    world.apply(rng)
    world.settle()
    world.readable = on.version + 1
    world.must_be_exact_for_all()


def test_what_others_wrote_into_partitions_is_cleaned(tmp_path: Path) -> None:
    """Not what they keep in hidden directories."""
    here = ["a.parquet", "_dv/v.bin", "v.bin", "_shard=s%2F0/a.parquet", "part/a.parquet"]
    left = ["_change_data/a.parquet", "_delta_log/1.checkpoint.parquet", "_theirs/a.parquet", "a.txt"]
    for name in [*here, *left]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(present(tmp_path).files) == sorted(here)


@pytest.mark.parametrize(
    "partition", [pytest.param(Partition(), marks=pytest.mark.wide), Partition("created", Span.MONTH)]
)
def test_partitions_are_left_to_those_who_keep_their_columns(tmp_path: Path, partition: Partition) -> None:
    """The files of others would lack them. So the table asks writers to keep them, which delta-rs cannot yet."""
    shape = replace(TABLE, arrangement=Arrangement(partition=partition))
    table = Arranged(tmp_path, Mode.MIRROR, random.Random(3), shape=shape)
    for _ in range(4):
        table.commit()
    table.settle()
    with pytest.raises(CommitFailedError, match="MaterializePartitionColumns"):
        DeltaTable(table.plain).optimize.compact()
    with pytest.raises(CommitFailedError, match="MaterializePartitionColumns"):
        DeltaTable(table.plain).optimize.z_order(["id"])
    assert DeltaTable(table.plain).vacuum(dry_run=False, full=True) == []
    DeltaTable(table.plain).create_checkpoint()
    table.commit()
    table.settle()
    table.must_be_exact()
    table.must_be_arranged()


@pytest.mark.wide
@pytest.mark.parametrize("mode", Mode)
def test_upkeep_may_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    """Behind every change of the file system, with files of ours and of others; the next one makes it good."""
    monkeypatch.setattr("catchment.sink.delta.plain.due.FAN", 3)
    monkeypatch.setattr(checkpoint, "INTERVAL", 3)
    table = Kept(tmp_path, mode, random.Random(mode.value))
    table.commit()
    table.settle()
    ends = changes = 0
    while ends < 40:
        table.commit()
        with ending(monkeypatch, changes) as ended:
            table.settle()
        changes = changes + 1 if ended else 0
        ends += bool(ended)
        if table.rng.random() < 0.2:
            DeltaTable(table.plain).optimize.compact()
    table.must_be_exact()
    done = {entry["operation"] for entry in DeltaTable(table.plain).history()}
    assert {"OPTIMIZE", "MERGE"} <= done


@pytest.mark.wide
def test_a_vacuum_of_all_but_the_newest_version(tmp_path: Path) -> None:
    """Older epochs are right or an error, and later ones are right."""
    table = Kept(tmp_path, Mode.MIRROR, random.Random(4))
    for _ in range(6):
        table.commit()
        table.commit()
        table.settle()
    DeltaTable(table.plain).optimize.compact()
    DeltaTable(table.plain).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    table.commit()
    gone = 0
    for epoch, rows in table.states.items():
        table.must_read(epoch, rows)
        with suppress(SinkError):
            catchment.read(tmp_path, str(table.shape.table), epoch=epoch)
            continue
        gone += 1
    assert 0 < gone < len(table.states)
    table.settle()
    table.must_read(*max(table.states.items()))


@pytest.mark.wide
def test_files_of_others_in_a_clustered_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catchment.sink.delta.plain.due.FAN", 2)
    table = Arranged(tmp_path, Mode.HISTORY, random.Random(6), shape=replace(TABLE, arrangement=IN_ORDER))
    for _ in range(5):
        table.commit()
        table.settle()
        DeltaTable(table.plain).optimize.z_order(["sig"])
    table.commit()
    table.settle()
    table.must_be_exact()
