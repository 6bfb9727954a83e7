"""MySQL with partial_revokes takes a privilege on all back for one schema: no more than that is lacking."""

from collections.abc import Iterator

import pytest

from catchment.demo.server import PrivateServer
from catchment.model.source import Endpoint
from catchment.source.objects import needed_of, read_objects
from catchment.source.session import connect

USER = "looks@'%'"
ALL = {"SELECT", "SHOW VIEW", "TRIGGER"}
GRANT = "GRANT SELECT, INSERT, SHOW VIEW, TRIGGER ON *.* TO `u`@`%`"


@pytest.mark.parametrize(
    ("lines", "needed"),
    [
        ([GRANT], ALL),
        (["GRANT ALL PRIVILEGES ON *.* TO `u`@`%` WITH GRANT OPTION"], ALL),
        (["GRANT SELECT ON `s`.* TO `u`@`%`", "GRANT SHOW VIEW ON *.* TO `u`@`%`"], {"SHOW VIEW"}),
        ([GRANT, "REVOKE INSERT, DELETE ON `s`.* FROM `u`@`%`"], ALL),
        ([GRANT, "REVOKE INSERT, TRIGGER ON `a``b`.* FROM `u`@`%`"], {"SELECT", "SHOW VIEW"}),
        (["REVOKE SELECT ON `s`.* FROM `u`@`%`", GRANT], {"SHOW VIEW", "TRIGGER"}),
        ([GRANT, "REVOKE ALL PRIVILEGES ON `s`.* FROM `u`@`%`"], set()),
        ([GRANT, "REVOKE something new FROM `u`@`%`"], set()),
    ],
)
def test_what_is_said(lines: list[str], needed: set[str]) -> None:
    assert needed_of(lines) == needed


@pytest.fixture
def server(mysql_97_server: PrivateServer) -> Iterator[PrivateServer]:
    """One with a user that may look at all."""
    one = mysql_97_server
    one.sql(
        "SET GLOBAL partial_revokes = ON",
        "CREATE DATABASE secret",
        "CREATE TABLE secret.t (id INT PRIMARY KEY)",
        "CREATE TRIGGER secret.tr BEFORE INSERT ON secret.t FOR EACH ROW SET @a = 1",
        f"CREATE USER {USER} IDENTIFIED BY 'a password'",
        f"GRANT SELECT, INSERT, SHOW VIEW, TRIGGER ON *.* TO {USER}",
    )
    yield one
    one.sql(f"DROP USER {USER}", "DROP DATABASE secret", "SET GLOBAL partial_revokes = OFF")


def test_a_server(server: PrivateServer) -> None:
    endpoint = Endpoint("-", "127.0.0.1", server.port, "looks", "a password")

    def looked() -> tuple[set[str], bool]:
        with connect(endpoint) as session:
            found = read_objects(session)
        return set(found.lacking), any(one.what == "trigger secret.tr" for one in found.stored)

    assert looked() == (set(), True)
    server.sql(f"REVOKE INSERT ON secret.* FROM {USER}")
    assert looked() == (set(), True)
    server.sql(f"REVOKE TRIGGER ON secret.* FROM {USER}")
    assert looked() == ({"TRIGGER"}, False)
