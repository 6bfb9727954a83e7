"""A schema for marks on servers of a test, and what stands there."""

from collections.abc import Iterable
from typing import Any

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer


def marks_allowed(servers: Iterable[PrivateServer], schema: str) -> str:
    """Have the feed's user write marks in a schema that is there; the name of the table."""
    for server in servers:
        server.sql(f"GRANT CREATE, INSERT, UPDATE, DELETE ON {schema}.* TO {FEED_USER}@'%'")
    return f"{schema}.marks"


def by(strategy: str, marks: str) -> dict[str, Any]:
    """What `copy` says."""
    return {"strategy": strategy, "marks": marks}


def sides(server: PrivateServer, marks: str) -> list[int]:
    """The side of each mark that stands in the table; none where there is no table yet."""
    schema, name = marks.split(".")
    if not server.sql(f"SHOW TABLES FROM {schema} LIKE '{name}'"):
        return []
    return [int(side) for (side,) in server.sql(f"SELECT side FROM {marks}")]
