"""Small feeds of the crash tests."""

from tests.crash.conftest import live

__all__ = ["live"]
