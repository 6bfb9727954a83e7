"""Random damage in the lake of a live feed: once it is mended, every epoch is what both judges say."""

import random
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from catchment.api.read import read
from catchment.cli.main import execute
from catchment.config import Feed
from catchment.feed.verify import verify
from catchment.model.epoch import Manifest, Part
from catchment.model.table import TableId
from catchment.sink.delta.epochs.table import EpochsTable
from catchment.sink.delta.layout import table_dir, tail_dir
from tests.promises.exact.conftest import Servers
from tests.promises.exact.feedrun import FeedRun
from tests.promises.exact.steps import run_here
from tests.promises.exact.trial import Trial
from tests.world.engines import Here
from tests.world.judge import Rows, compare, lake_rows, oracle_rows, source_rows
from tests.world.new_log_file import begin_new_file
from tests.world.oracle import Oracle
from tests.world.planted import Rewrite, plant
from tests.world.prepared import roll_back_prepared

Taken = dict[tuple[int, str], Rows]


def newest(feed: Feed) -> Manifest:
    row = EpochsTable(feed.sink.path, feed.name).newest()
    assert row is not None
    return row.manifest


def damage(key: tuple[str, ...], shards: list[str], rng: random.Random) -> Rewrite:
    """Some rows go, some come to another shard, some have the values of others, and some are there twice."""

    def rewrite(rows: pa.Table) -> pa.Table:
        if rows.num_rows < 4:
            return rows
        order = np.array(rng.sample(range(rows.num_rows), rows.num_rows))
        moved, mixed, twice = (np.sort(part) for part in np.array_split(order[: rows.num_rows // 3], 4)[1:])
        places = np.setdiff1d(np.arange(rows.num_rows), np.array_split(order[: rows.num_rows // 3], 4)[0])
        for name in rows.column_names:
            if name.startswith("_") or name in key:
                continue
            values = rows[name].combine_chunks().to_pylist()
            others = [values[place] for place in rng.sample(list(map(int, mixed)), len(mixed))]
            for place, value in zip(mixed, others, strict=True):
                values[place] = value
            rows = _with(rows, name, values)
        of = rows["_shard"].to_pylist()
        for place in moved:
            of[place] = rng.choice(shards)
        rows = _with(rows, "_shard", of)
        return pa.concat_tables([rows.take(pa.array(places)), rows.take(pa.array(twice))])

    return rewrite


def _with(rows: pa.Table, name: str, values: list[object]) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))


def damage_all(feed: Feed, keys: Mapping[str, tuple[str, ...]], rng: random.Random) -> int:
    """How many files were damaged."""
    files, manifest = 0, newest(feed)
    for table, key in keys.items():
        of, shards = TableId.parse(table), list(manifest.cut.shards)
        shape, rewrite = manifest.shape(of), damage(key, shards, rng)
        files += plant(Path(str(table_dir(feed.sink.path, of))), shape, rewrite)
        for part in Part:
            files += plant(Path(str(tail_dir(feed.sink.path, of))), shape, rewrite, part)
    return files


def taken(feed: Feed, keys: Mapping[str, tuple[str, ...]], since: int) -> Taken:
    """What readers get as of each epoch from one on. Damage that comes later would be seen as of these, too."""
    rows = EpochsTable(feed.sink.path, feed.name).read_all()
    epochs = [row.manifest.epoch for row in rows if row.manifest.epoch >= since]
    return {
        (epoch, table): lake_rows(read(feed, table, epoch).arrow().to_pylist(), key)
        for epoch in epochs
        for table, key in keys.items()
    }


def judged(feed: Feed, found: Taken, oracles: Mapping[str, Oracle]) -> int:
    """Compare what was taken with the replayed log; how many epochs there were."""
    epochs = {epoch for epoch, _ in found}
    for row in EpochsTable(feed.sink.path, feed.name).read_all():
        for shard, oracle in oracles.items():
            at = row.manifest.cut.positions[shard].at
            oracle.advance(at.file, at.offset)
        for (epoch, table), lake in found.items():
            if epoch == row.manifest.epoch:
                replayed = oracle_rows({shard: oracle.state[table] for shard, oracle in oracles.items()})
                assert compare(lake, replayed) == [], f"epoch {epoch}, {table}"
    return len(epochs)


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.long)])
def test_every_epoch_is_exact_once_random_damage_is_mended(
    servers: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rounds: int,
) -> None:
    run_here(monkeypatch)
    rng = random.Random(41)
    trial = Trial(servers, fresh_schema(*servers.values()), tmp_path, seed=41, chunk_rows=30, loaded_rows=120)
    feed, mended_at = trial.feed, 0
    found: Taken = {}
    oracles = {name: Oracle.from_rest(server.login(), trial.keys) for name, server in servers.items()}
    with ExitStack() as stack:
        for server in servers.values():
            stack.callback(roll_back_prepared, server)
        stack.enter_context(trial.writers)
        for server in servers.values():
            begin_new_file(server)
        run = stack.enter_context(FeedRun(feed))
        run.wait_for_epochs(1)
        stack.enter_context(trial.xa_writers)
        stack.enter_context(trial.beside)
        for _ in range(rounds):
            run.wait("all is copied", lambda done: done[-1].cut.copied)
            run.wait_for_epochs(len(run.epochs) + 4)
            found |= taken(feed, trial.keys, mended_at) if mended_at else {}
            assert damage_all(feed, trial.keys, rng)
            assert execute(["verify", str(tmp_path / "feed.yaml"), "--repair"]) == 0
            said = capsys.readouterr().out
            assert "mended" in said
            assert "compared again: equal" in said
            mended_at = newest(feed).epoch
        run.wait_for_epochs(len(run.epochs) + 4)
        found |= taken(feed, trial.keys, mended_at)
        with trial.writers.paused(), trial.xa_writers.paused():
            end = run.wait_for_log(servers)
            for table, key in trial.keys.items():
                lake = lake_rows(read(feed, table, end.epoch).arrow().to_pylist(), key)
                assert compare(lake, source_rows(servers, table, key)) == []
            verdict = verify(feed, {endpoint.shard: endpoint for endpoint in feed.endpoints()}, Here())
            assert verdict.differences == 0, verdict.found
    assert judged(feed, found, oracles) > 2 * rounds
