"""Random epochs, settled at random: every version of the plain table is one exact epoch, for every reader."""

import datetime as dt
import json
import random
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from catchment.sink.delta.layout import tail_dir
from catchment.sink.delta.log.delta_log import DeltaLog, LakeFile
from catchment.sink.delta.plain.index import Index
from catchment.sink.delta.plain.join import Joined, commit, prepare
from catchment.sink.delta.plain.settle import SettleOrder, settle
from catchment.sink.delta.plain.shape import Form
from catchment.sink.delta.plain.tail import Limits
from tests.layers.sink.model import FEED
from tests.layers.sink.test_model import SHAPES, SHARDS, Lake, State
from tests.world.delta_scan import DeltaScan
from tests.world.planted import plant

Rows = list[tuple[Any, ...]]


class Settling:
    """A lake whose tables are tails, and the plain table beside it. `exact`: what each of its versions has to be."""

    def __init__(self, root: Path, kind: str, form: Form | None = None) -> None:
        self.lake = Lake(root / "tail", kind)
        self.form = form or Form()
        self.index: Index | None = None
        self.plain = root / "plain"
        self.states: dict[int, State] = {}
        self.exact: dict[int, State] = {}
        self.prepared: list[Joined] = []
        self.joins = 0

    def apply(self, rng: random.Random) -> None:
        """An epoch of changes to copied keys, and now and then a chunk."""
        lake = self.lake
        copied = sorted({(s, k) for s in SHARDS for k in range(60)} - lake.uncopied)
        touched = rng.sample(copied, min(len(copied), rng.randrange(9)))
        changes = [(s, k, rng.choice((None, rng.randrange(99)))) for s, k in touched]
        chunk = rng.sample(sorted(lake.uncopied), min(len(lake.uncopied), rng.choice((0, 0, 5, 25))))
        lake.uncopied -= set(chunk)
        if changes or chunk:
            lake.apply(changes, chunk)
            self.states[lake.epoch] = dict(lake.state)

    def settle(self, limits: Limits | None = None) -> None:
        """One settle to the newest epoch."""
        if not self.lake.epoch:
            return
        shape = self.lake.shape
        settled = settle(self.order(limits), lambda _: shape)
        if settled is not None:
            self.exact[settled.version] = self.states[settled.epoch]

    def order(self, limits: Limits | None = None) -> SettleOrder:
        """Up to the newest epoch."""
        shape = self.lake.shape
        tail = DeltaLog(tail_dir(self.lake.root, shape.table))
        plain, limits = DeltaLog(self.plain), limits or Limits()
        return SettleOrder(plain, tail, shape, FEED, 1, self.lake.epoch, limits, self.form, self.index)

    def joined(self, files: Sequence[LakeFile]) -> Joined | None:
        """A join of some files of the newest version that is not committed yet."""
        on = DeltaLog(self.plain).newest()
        assert on is not None
        return prepare(self.plain, self.lake.shape, on, files)

    def prepare_join(self, rng: random.Random) -> None:
        """Write a file for some of the newest version's, whatever is due."""
        snapshot = DeltaLog(self.plain).newest()
        if snapshot is not None and snapshot.files:
            files = sorted(snapshot.files.values(), key=lambda file: file.path)
            joined = self.joined(rng.sample(files, rng.randint(1, len(files))))
            if joined is not None:
                self.prepared.append(joined)

    def commit_join(self) -> None:
        """Commit the oldest join that was prepared, whatever has come since; nothing when a source is gone."""
        if self.prepared:
            before = DeltaLog(self.plain).newest()
            assert before is not None
            after = commit(self.order(), self.prepared.pop(0))
            if after is not None:
                self.joins += 1
                self.exact[after.version] = self.exact[before.version]

    def files(self) -> list[LakeFile]:
        """The newest version's."""
        snapshot = DeltaLog(self.plain).newest()
        return [] if snapshot is None else list(snapshot.files.values())

    def expected(self, version: int) -> Rows:
        found = [(key[0], epoch, *row) for key, (epoch, row) in self.exact[version].items()]
        return sorted(found, key=repr)

    def turn(self, rng: random.Random, turns: int) -> None:
        """Epochs, settles and joins at random; a settle and a join at the end."""
        for _ in range(turns):
            self.apply(rng)
            if rng.random() < 0.4:
                self.settle(rng.choice((None, Limits(rows=6), Limits(bytes=2000))))
            if rng.random() < 0.3:
                self.prepare_join(rng)
            if rng.random() < 0.3:
                self.commit_join()
        self.settle()
        self.prepare_join(rng)
        while self.prepared:
            self.commit_join()

    def replaced(self) -> list[list[str]]:
        """By the lines of its log, of each file that a version takes out and puts in: in which order it says so."""
        found: list[list[str]] = []
        for entry in sorted((self.plain / "_delta_log").glob("*.json")):
            order: dict[str, list[str]] = {}
            for line in map(json.loads, entry.read_text().splitlines()):
                for action in {"add", "remove"} & line.keys():
                    order.setdefault(line[action]["path"], []).append(action)
            found += [actions for actions in order.values() if len(actions) > 1]
        return found

    def must_be_exact(self, most: int = 8) -> None:
        """So many versions at most, for every reader; the newest always."""
        for version in some_of(self.exact, most):
            for read in (by_polars, by_delta_rs):
                rows = [tuple(row.values()) for row in read(self.plain, version).to_pylist()]
                assert sorted(rows, key=repr) == self.expected(version), (version, read.__name__)


def some_of(numbers: Collection[int], most: int) -> list[int]:
    """So many of some numbers at most, in order; the largest always."""
    newest = max(numbers)
    others = sorted(set(numbers) - {newest})
    return [*sorted(random.Random(newest).sample(others, min(most - 1, len(others)))), newest]


def by_polars(path: Path, version: int) -> pa.Table:
    return pl.scan_delta(str(path), version=version).collect().to_arrow()


def by_delta_rs(path: Path, version: int) -> pa.Table:
    engine = QueryBuilder().register("plain", DeltaTable(path, version=version))
    return pa.table(engine.execute("SELECT * FROM plain").read_all())


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("turns", [16, pytest.param(60, marks=pytest.mark.wide)])
def test_every_version_is_exact_for_every_reader(tmp_path: Path, kind: str, turns: int) -> None:
    rng = random.Random(f"{kind} {turns}")
    world = Settling(tmp_path, kind)
    world.turn(rng, turns)
    assert world.joins
    assert len(world.exact) > 5
    world.must_be_exact(turns // 2)


def test_a_file_is_taken_out_in_front_of_where_it_is_put_in_again(tmp_path: Path) -> None:
    """Readers that know a file by its path alone have it with the vector of the last action
    (ClickHouse/ClickHouse#115043, trinodb/trino#31252)."""
    world = Settling(tmp_path, "int")
    world.turn(random.Random(1), 16)
    replaced = world.replaced()
    assert len(replaced) > 5
    assert all(actions == ["remove", "add"] for actions in replaced), replaced


@pytest.mark.parametrize("kind", SHAPES)
def test_a_join_keeps_rows_that_damage_put_there_twice(tmp_path: Path, kind: str) -> None:
    """It changes no row: which of them is to go, a verify finds in the source."""
    rng = random.Random(kind)
    world = Settling(tmp_path, kind)
    while len(world.files()) < 3:
        world.apply(rng)
        world.settle()
    plant(world.plain, world.lake.shape, lambda rows: pa.concat_tables([rows, rows.slice(0, 2)]))
    before = _rows(by_delta_rs(world.plain, DeltaTable(world.plain).version()))
    joined = world.joined(world.files())
    assert joined is not None
    after = commit(world.order(), joined)
    assert after is not None
    assert len(after.files) == 1
    assert _rows(by_delta_rs(world.plain, after.version)) == before
    assert len(set(before)) < len(before)


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("kind", ["composite", "datetime"])
def test_what_bounds_rule_out_is_not_there(tmp_path: Path, kind: str) -> None:
    """Readers pass over files by their bounds: of each column, before, at and behind each value that stands in it."""
    rng = random.Random(kind)
    world = Settling(tmp_path, kind)
    world.turn(rng, 16)
    rows = by_delta_rs(world.plain, max(world.exact))
    assert {len(file.bounds().max_values) for file in world.files()} == {len(rows.column_names)}
    with DeltaScan() as scan:
        for name in rows.column_names:
            values = [value for value in pc.unique(rows[name]).to_pylist() if value is not None]
            for value in rng.sample(values, min(len(values), 2)):
                for sign in ("<", "=", ">"):
                    condition = f'"{name}" {sign} {_literal(value)}'
                    query = f"SELECT count(*) AS n FROM {{}} WHERE {condition}"
                    expected = sum(_holds(sign, row, value) for row in rows[name].to_pylist())
                    found = scan.query("", query.format(f"delta_scan('{world.plain}')"))
                    engine = QueryBuilder().register("plain", DeltaTable(world.plain))
                    assert found["n"].to_pylist() == [expected], condition
                    assert pa.table(engine.execute(query.format("plain")).read_all())["n"].to_pylist() == [
                        expected
                    ]


def _holds(sign: str, row: Any, value: Any) -> bool:
    return row is not None and {"<": row < value, "=": row == value, ">": row > value}[sign]


def _literal(value: Any) -> str:
    match value:
        case dt.datetime():
            return (
                f"TIMESTAMP '{value.isoformat(sep=' ')}'"
                if value.tzinfo is None
                else f"'{value.isoformat()}'"
            )
        case dt.date():
            return f"DATE '{value}'"
        case bytes():
            return "'" + value.decode("latin-1") + "'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return str(value)


@pytest.mark.parametrize("kind", ["int", "composite", "datetime"])
def test_a_checkpoint_by_delta_rs_keeps_the_vectors(tmp_path: Path, kind: str) -> None:
    rng = random.Random(kind)
    world = Settling(tmp_path, kind)
    for _ in range(12):
        world.apply(rng)
        world.settle()
    DeltaTable(world.plain).create_checkpoint()
    newest = max(world.exact)
    for version in range(newest + 1):
        (world.plain / "_delta_log" / f"{version:020d}.json").unlink()
    snapshot = DeltaLog(world.plain).newest()
    assert snapshot is not None
    assert snapshot.version == newest
    assert sum(file.live for file in snapshot.files.values()) == len(world.exact[newest])
    world.apply(rng)
    world.settle()
    later = max(world.exact)
    for read in (by_polars, by_delta_rs):
        rows = [tuple(row.values()) for row in read(world.plain, later).to_pylist()]
        assert sorted(rows, key=repr) == world.expected(later)
