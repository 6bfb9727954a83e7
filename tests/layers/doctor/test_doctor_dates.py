"""What the doctor says of dates in keys, where the server accepts such as no calendar has."""

from collections.abc import Callable, Iterator

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.doctor import Severity, table_checks
from catchment.model.source import Endpoint
from catchment.source.session import connect

SAFE = "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE"


@pytest.fixture
def mode(shard: PrivateServer) -> Iterator[Callable[[str], None]]:
    """Sets the server's sql_mode until the end of the test."""
    ((before,),) = shard.sql("SELECT @@GLOBAL.sql_mode")

    def set_to(mode: str) -> None:
        shard.sql(f"SET GLOBAL sql_mode = '{mode}'")

    yield set_to
    shard.sql(f"SET GLOBAL sql_mode = '{before}'")


@pytest.mark.parametrize(
    ("sql_mode", "warned"),
    [
        (SAFE, False),
        (f"{SAFE},ALLOW_INVALID_DATES", True),
        ("STRICT_TRANS_TABLES,NO_ZERO_DATE", True),
        ("NO_ZERO_DATE,NO_ZERO_IN_DATE", True),
        ("", True),
    ],
)
def test_dates_in_keys(
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    mode: Callable[[str], None],
    sql_mode: str,
    warned: bool,
) -> None:
    schema = fresh_schema(shard)
    shard.sql(
        "CREATE TABLE users (email VARCHAR(20), gone DATETIME, PRIMARY KEY (email, gone))",
        "CREATE TABLE days (id INT PRIMARY KEY, day DATE)",
        database=schema,
    )
    mode(sql_mode)
    with connect(Endpoint("s", shard.host, shard.port, FEED_USER, shard.password)) as session:
        chosen = table_checks.chosen_tables(session, [f"{schema}.*"])
        found = table_checks.check_tables(session, chosen)[0]
    assert [one.severity for one in found] == [Severity.WARNING] * warned
    for one in found:
        assert f"in their keys: {schema}.users (gone)" in one.found
        assert "days" not in one.found
        assert "NO_ZERO_DATE" in one.remedy
