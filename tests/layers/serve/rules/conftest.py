"""The judge, made once."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from catchment.demo.server import PrivateServer
from tests.layers.serve.rules.judge import Judge, judge_on

_SCHEMA = "rules_judge"


@contextmanager
def judging(server: PrivateServer) -> Iterator[Judge]:
    """A filled table on a server, and who asks it."""
    server.sql(f"CREATE DATABASE {_SCHEMA}")
    session = server.connect(database=_SCHEMA)
    try:
        yield judge_on(_SCHEMA, session)
    finally:
        session.close()
        server.sql(f"DROP DATABASE {_SCHEMA}")


@pytest.fixture(scope="module")
def judge(shard: PrivateServer) -> Iterator[Judge]:
    """A judge on the shared server."""
    with judging(shard) as found:
        yield found
