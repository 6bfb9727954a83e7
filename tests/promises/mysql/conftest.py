"""Small feeds of the crash tests."""

from tests.promises.crash.conftest import live

__all__ = ["live"]
