"""A bucket of the tests' S3 server, and the words that clients want for it."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from obstore.store import S3Store

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

    def store(self, retries: int = 0) -> S3Store:
        """obstore's client, which repeats a request at once, `retries` times at most."""
        return S3Store(
            self.name,
            endpoint=self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=REGION,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
            retry_config={"max_retries": retries, "backoff": {"init_backoff": _SOON, "max_backoff": _SOON}},
        )
