"""Small feeds on shards and servers of the crash tests, and the command in this process."""

from tests.promises.crash.conftest import live, pair

__all__ = ["live", "pair"]
