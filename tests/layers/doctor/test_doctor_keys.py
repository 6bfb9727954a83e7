"""What the doctor says of a key whose first columns alone cut a table into chunks."""

from collections.abc import Callable

import pytest

from catchment.demo.accounts import FEED_USER
from catchment.demo.server import PrivateServer
from catchment.doctor import Severity, table_checks
from catchment.model.source import Endpoint
from catchment.source.session import connect


@pytest.mark.parametrize(
    ("key", "warned"),
    [
        ("tenant, name", " rows for each value of (tenant)"),
        ("name, tenant", " rows, and the order of its key (name, tenant) is known to the server alone"),
        ("tenant, n", ""),
        ("n, name", ""),
    ],
)
def test_very_many_rows_of_one_value(
    shard: PrivateServer,
    fresh_schema: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    warned: str,
) -> None:
    schema = fresh_schema(shard)
    numbers = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(10))
    shard.sql(
        f"CREATE TABLE x (tenant int, name varchar(20), n int, PRIMARY KEY ({key}))",
        "CREATE TABLE digits (n int PRIMARY KEY)",
        f"INSERT INTO digits {numbers}",
        "INSERT INTO x SELECT n % 2, CONCAT('n', n), n FROM"
        " (SELECT a.n + 10 * b.n + 100 * c.n + 1000 * (d.n % 4) AS n FROM digits a, digits b, digits c, digits d"
        " WHERE d.n < 4) AS counted",
        "DROP TABLE digits",
        "ANALYZE TABLE x",
        database=schema,
    )
    endpoint = Endpoint("s", shard.host, shard.port, FEED_USER, shard.password)

    def found() -> list[tuple[Severity, str, str]]:
        with connect(endpoint) as session:
            chosen = table_checks.chosen_tables(session, [f"{schema}.*"])
            findings, _ = table_checks.check_tables(session, chosen)
        return [(f.severity, f.found, f.remedy) for f in findings]

    assert found() == [], "a few kilobytes"
    monkeypatch.setattr(table_checks, "VALUE_BYTES_MAX", 10_000)
    if not warned:
        assert found() == []
        return
    ((severity, text, remedy),) = found()
    assert severity is Severity.WARNING
    assert text.startswith(f"{schema}.x has about ")
    assert text.endswith(warned)
    assert "memory" in remedy
