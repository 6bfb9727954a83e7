"""Addresses of lakes: what they are, and that none gives away a password."""

import pickle
from pathlib import Path

import pytest

from catchment.model.errors import ConfigError
from catchment.model.location import ObjectPath, location


def test_addresses() -> None:
    lake = location("s3://bucket/some/lake/")
    assert lake == ObjectPath("s3://bucket", "some/lake")
    assert str(lake / "shop" / "_part=base") == "s3://bucket/some/lake/shop/_part=base"
    assert (lake / "x").name == "x"
    assert (lake / "x").parent == lake
    assert location("gs://bucket") / "x" == ObjectPath("gs://bucket", "x")
    assert ObjectPath("gs://bucket", "x").parent == ObjectPath("gs://bucket")
    assert str(ObjectPath("gs://bucket")) == "gs://bucket"
    assert location(str(lake)) == pickle.loads(pickle.dumps(lake)) == lake


def test_directories() -> None:
    assert location("lake") == Path("lake")
    assert location(Path("lake")) == Path("lake")


@pytest.mark.parametrize(
    "address",
    [
        "S3://bucket/x",
        "s3a://bucket/x",
        "file:///x",
        "s3://",
        "s3:///x",
        "s3://Bucket/x",
        "s3://key:hunter2@bucket/x",
        "s3://bucket/a//b",
        "s3://bucket/../b",
        "s3://bucket/a b",
        "s3://bucket/a%20b",
        "s3://bucket/x?secret=hunter2",
        "s3://bucket/x#hunter2",
        "s3://bucket/é",
        "s3://bucket/a\\b",
    ],
)
def test_what_is_no_address_of_a_lake(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        location(address)
    assert "hunter2" not in str(raised.value)
