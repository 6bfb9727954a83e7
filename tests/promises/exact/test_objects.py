"""Every epoch of a live feed into an S3 server is exact, for us and for readers that know Delta alone."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark import SparkContext

import catchment
from catchment.feed.verify import verify
from catchment.model.location import location
from catchment.model.table import TableId
from catchment.sink.delta.layout import table_dir
from tests.conftest import Shards
from tests.promises.exact.conftest import Servers
from tests.promises.exact.steps import Steps, run_here
from tests.promises.exact.trial import Trial
from tests.promises.exact.verdict import Verdict
from tests.world.delta_scan import DeltaScan
from tests.world.engines import Here
from tests.world.marks import by, marks_allowed
from tests.world.s3.bucket import Bucket, in_environment
from tests.world.s3.server import S3Server
from tests.world.settled import settled

CHANGES = (
    "UPDATE t SET v = CONCAT(v, '!') WHERE id % 3 = 0",
    "DELETE FROM t WHERE id % 10 = 0",
    "INSERT INTO t (id, v) VALUES (100, 'new')",
)


@pytest.fixture
def judged(
    servers: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    s3_server: S3Server,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Verdict]:
    """Runs a trial of so many epochs whose lake is a bucket, and judges it."""

    def run(
        epochs: int, rows: int, met: int, engine: str, copying: Mapping[str, Any] = MappingProxyType({})
    ) -> Verdict:
        with in_environment(bucket, monkeypatch):
            trial = Trial(
                servers,
                fresh_schema(*servers.values()),
                tmp_path,
                seed=31,
                chunk_rows=2 * rows // epochs,
                loaded_rows=rows,
                lake=location(f"s3://{bucket.name}/lake"),
                copying=copying,
                engine=engine,
            )
            trial.files = s3_server.root / bucket.name / "lake"
            verdict = trial.run(epochs=epochs, rest_every=epochs // 2, met=met)
        verdict.must_be_clean(trial.seed)
        assert verdict.copying >= epochs // 3
        assert verdict.plain >= met
        assert not list((trial.files / "_catchment" / "staged").rglob("*.arrow"))
        return verdict

    return run


@pytest.mark.promise("a lake in an object store is as exact as one in a directory")
def test_a_lake_in_a_bucket(
    shards: Shards,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    s3_server: S3Server,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By `catchment.read`, by `verify`, and by readers that know Delta alone, at each version of the plain table."""
    run_here(monkeypatch)
    with in_environment(bucket, monkeypatch):
        steps = Steps(tmp_path, {"a": shards[0], "b": shards[1]}, fresh_schema(*shards))
        steps.set(sink={"path": f"s3://{bucket.name}/lake", "changes": True})
        steps.everywhere(
            "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))",
            "INSERT INTO t SELECT seq, CONCAT('v', seq) FROM seq_1_to_60",
        )
        had: dict[int, list[tuple[Any, ...]]] = {}
        for changes in ((), CHANGES, ("ALTER TABLE t ADD COLUMN w INT NOT NULL DEFAULT 7", *CHANGES[:1])):
            steps.everywhere(*changes)
            names = [*steps.columns("a", "t")]
            steps.must_be_equal("t", *names)
            settled(steps.feed)
            had[catchment.read(steps.file, f"{steps.schema}.t").epoch] = steps.source("t", "id", "v")
        for epoch, rows in had.items():
            found = catchment.read(steps.file, f"{steps.schema}.t", epoch).arrow().to_pylist()
            assert sorted((row["_shard"], row["id"], row["v"]) for row in found) == rows
        endpoints = {endpoint.shard: endpoint for endpoint in steps.feed.endpoints()}
        assert verify(steps.feed, endpoints, Here()).differences == 0
        place, columns = table_dir(steps.feed.sink.path, TableId(steps.schema, "t")), ["_shard", "id", "v"]
        files = s3_server.root / bucket.name / "lake" / steps.schema / "t"
        with DeltaScan() as judge:
            for version, rows in enumerate(had.values()):
                held = DeltaTable(str(place), version=version, storage_options={"allow_http": "true"})
                asked = QueryBuilder().register("t", held).execute("SELECT _shard, id, v FROM t")
                for found in (judge.rows(files, columns, version), pa.table(asked.read_all())):
                    assert sorted(tuple(row.values()) for row in found.to_pylist()) == rows


LONG = (pytest.mark.long, pytest.mark.timeout(3600))


@pytest.mark.parametrize(("epochs", "rows", "met"), [(12, 60, 3), pytest.param(100, 300, 20, marks=LONG)])
def test_epochs_that_spark_puts_into_a_bucket_are_exact(
    judged: Callable[..., Verdict], spark: SparkContext, epochs: int, rows: int, met: int
) -> None:
    assert judged(epochs=epochs, rows=rows, met=met, engine="spark").told >= 1


@pytest.mark.mariadb("marks are not proven on MySQL")
def test_epochs_of_rows_that_wait_in_a_bucket_for_their_cut_are_exact(
    judged: Callable[..., Verdict], servers: Servers, fresh_schema: Callable[..., str]
) -> None:
    copying = by("watermark", marks_allowed(servers.values(), fresh_schema(*servers.values())))
    judged(epochs=10, rows=60, met=2, engine="local", copying=copying)
