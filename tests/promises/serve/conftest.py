"""The shards of streams."""

from tests.promises.stream.conftest import servers

__all__ = ["servers"]
