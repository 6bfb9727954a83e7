"""Points in time as the state store keeps them and as people read them."""

from datetime import UTC, datetime


def time_text(time_us: int) -> str:
    """Microseconds since 1970 in UTC, to the second: `2026-11-22T04:12:07Z`."""
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
