"""Two shards with small log files, and one Spark session, for all exactness tests of the run."""

import secrets
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from catchment.demo.server import PrivateServer
from catchment.spark import job
from tests.servers.chosen import chosen_server

Servers = dict[str, PrivateServer]


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The running shards `-80` and `80-`; their log rotates every 64 KiB."""
    password = secrets.token_hex(12)
    small = {"max_binlog_size": 65536}
    with (
        chosen_server(server_id=111, password=password, settings=small) as first,
        chosen_server(server_id=112, password=password, settings=small) as second,
    ):
        yield {"-80": first, "80-": second}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that every `run_feed` finds, so that Java starts once."""

    def warm(number: int) -> int:
        # what a task needs is loaded, which takes seconds, before writers fill the log
        from catchment.spark import run_task

        return number if run_task else -1

    session = job.session("exact", "local[2]", {})
    job.each(session, warm, range(4))
    yield session
    session.stop()
