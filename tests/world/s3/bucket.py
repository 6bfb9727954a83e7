"""A bucket of the tests' S3 server, and the words that clients want for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

import pytest
from obstore.store import S3Store

from catchment.sink.storage.objects import object_storage

REGION = "us-east-1"
_SOON = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Bucket:
    """Where a bucket is, and who may use it."""

    name: str
    endpoint: str
    access_key: str
    secret_key: str

    def at(self, endpoint: str) -> Self:
        """The same bucket by another way, such as a proxy."""
        return replace(self, endpoint=endpoint)

    def store(self, retries: int = 0, seconds: float = 30.0) -> S3Store:
        """obstore's client. It waits `seconds` for an answer, and repeats at once, `retries` times at most."""
        return S3Store(
            self.name,
            endpoint=self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=REGION,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True, "timeout": timedelta(seconds=seconds)},
            retry_config={"max_retries": retries, "backoff": {"init_backoff": _SOON, "max_backoff": _SOON}},
        )

    def storage_options(self) -> dict[str, str]:
        """What delta-rs and Polars want to be told."""
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret_key,
            "aws_region": REGION,
            "aws_allow_http": "true",
        }


@contextmanager
def in_environment(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let programs find the bucket as they find one in the world: by the environment."""
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
        patch.setenv("AWS_ALLOW_HTTP", "true")
        patch.setenv("AWS_ACCESS_KEY_ID", bucket.access_key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", bucket.secret_key)
        patch.setenv("AWS_REGION", REGION)
        object_storage.cache_clear()
        yield
    object_storage.cache_clear()
