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


@pytest.mark.wide
def test_40_epochs_in_a_bucket_are_exact(
    servers: Servers,
    spark: SparkContext,
    fresh_schema: Callable[..., str],
    tmp_path: Path,
    s3_server: S3Server,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with in_environment(bucket, monkeypatch):
        schema, lake = fresh_schema(*servers.values()), location(f"s3://{bucket.name}/lake")
        trial = Trial(servers, schema, tmp_path, seed=31, loaded_rows=120, lake=lake)
        trial.files = s3_server.root / bucket.name / "lake"
        verdict = trial.run(epochs=40, rest_every=8)
    verdict.must_be_clean(trial.seed)
    assert verdict.epochs >= 40
    assert verdict.copying >= 20
    assert verdict.rests >= 5
    assert trial.beside.settles > 5
    assert verdict.plain > 10
    assert verdict.told > 10


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
        trial = Trial(servers, schema, tmp_path, seed=32, lake=lake, copying=copying, engine="local")
        trial.files = s3_server.root / bucket.name / "lake"
        verdict = trial.run(epochs=10, rest_every=5)
    verdict.must_be_clean(trial.seed)
    assert verdict.copying >= 5
    assert not list((trial.files / "_catchment" / "staged").glob("*"))
