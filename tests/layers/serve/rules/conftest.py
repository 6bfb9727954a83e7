"""The judge, made once."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from tests.layers.serve.rules.judge import Judge, judge_on

_SCHEMA = "rules_judge"


@pytest.fixture(scope="module")
def judge(shard: PrivateServer) -> Iterator[Judge]:
    """A filled table on the shared server, and who asks it."""
    shard.sql(f"CREATE DATABASE {_SCHEMA}")
    session = shard.connect(database=_SCHEMA)
    try:
        yield judge_on(shard, _SCHEMA, session)
    finally:
        session.close()
        shard.sql(f"DROP DATABASE {_SCHEMA}")
