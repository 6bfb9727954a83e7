"""Every epoch of a live feed into an S3 server is exact, for us and for readers that know Delta alone."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from catchment.model.location import location
from tests.promises.exact.conftest import Servers
from tests.promises.exact.trial import Trial
from tests.world.marks import by, marks_allowed
from tests.world.s3.bucket import Bucket, in_environment
from tests.world.s3.server import S3Server

LONG = pytest.mark.timeout(3600)


@pytest.mark.parametrize(
    ("epochs", "rows", "chunk_rows"),
    [
        pytest.param(12, 60, 10, marks=pytest.mark.wide),
        pytest.param(100, 300, 3, marks=[pytest.mark.long, LONG]),
    ],
)
def test_epochs_in_a_bucket_are_exact(
    servers: Servers,
    spark: SparkContext,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    s3_server: S3Server,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    epochs: int,
    rows: int,
    chunk_rows: int,
) -> None:
    with in_environment(bucket, monkeypatch):
        schema, lake = fresh_schema(*servers.values()), location(f"s3://{bucket.name}/lake")
        trial = Trial(servers, schema, tmp_path, seed=31, chunk_rows=chunk_rows, loaded_rows=rows, lake=lake)
        trial.files = s3_server.root / bucket.name / "lake"
        verdict = trial.run(epochs=epochs, rest_every=epochs // 5)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= epochs
    assert verdict.copying >= epochs // 5
    assert verdict.rests >= 5
    assert trial.beside.settles > epochs // 20
    assert verdict.plain > epochs // 5
    assert verdict.told > epochs // 5


@pytest.mark.wide
@pytest.mark.mariadb("marks are not proven on MySQL")
def test_rows_that_wait_for_their_cut_in_a_bucket_are_exact(
    servers: Servers,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    s3_server: S3Server,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copying = by("watermark", marks_allowed(servers.values(), fresh_schema(*servers.values())))
    with in_environment(bucket, monkeypatch):
        schema, lake = fresh_schema(*servers.values()), location(f"s3://{bucket.name}/lake")
        trial = Trial(
            servers,
            schema,
            tmp_path,
            seed=32,
            chunk_rows=12,
            lake=lake,
            copying=copying,
            engine="local",
        )
        trial.files = s3_server.root / bucket.name / "lake"
        verdict = trial.run(epochs=10, rest_every=5)
    verdict.must_be_clean(trial.seed)
    assert verdict.copying >= 5
    assert not list((trial.files / "_catchment" / "staged").glob("*"))
