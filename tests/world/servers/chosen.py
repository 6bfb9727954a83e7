"""The server that tests use when they do not ask for one: MariaDB of the system, or what CATCHMENT_TEST_SERVER says.

`CATCHMENT_TEST_SERVER=mysql-8.0 pytest ...` runs the suite against a real MySQL 8.0 (`make test-mysql`). Tests that
need a MariaDB have the mark `mariadb` with the reason; they are skipped then.
"""

import os
from typing import Any

import pytest

from catchment.demo.server import PrivateServer
from tests.world.held import mysql_options
from tests.world.servers.builds import mariadb_11, mysql_80, mysql_97
from tests.world.servers.debian import NotHere
from tests.world.servers.launch import PrivateMariaDB, PrivateMySQL, with_numbers

VARIABLE = "CATCHMENT_TEST_SERVER"
SYSTEM = "mariadb"
MYSQL = ("mysql-8.0", "mysql-9.7")
KINDS = (SYSTEM, "mariadb-11.8", *MYSQL)


def chosen_kind() -> str:
    """Which kind of server the run is against; raises ValueError for one that is not known."""
    kind = os.environ.get(VARIABLE) or SYSTEM
    if kind not in KINDS:
        raise ValueError(f"{VARIABLE} is {kind!r}; it knows {', '.join(KINDS)}")
    return kind


def chosen_server(**arguments: Any) -> PrivateServer:
    """A server of one's own of the chosen kind, not started; arguments as PrivateServer's. Skips the test where
    its build cannot be had.
    """
    kind = chosen_kind()
    try:
        match kind:
            case "mysql-8.0" | "mysql-9.7":
                build = mysql_80() if kind == "mysql-8.0" else mysql_97()
                settings = {**mysql_options(build), **arguments.pop("settings", {})}
                return PrivateMySQL(build, settings=settings, **arguments)
            case "mariadb-11.8":
                return PrivateMariaDB(mariadb_11(), **arguments)
    except NotHere as why:
        pytest.skip(str(why))
    return PrivateServer(**arguments)


def in_its_words(statement: str) -> str:
    """The statement for a session of the chosen server, with tables such as `mysql.seq_1_to_9` on MySQL, too."""
    return with_numbers(statement) if on_mysql() else statement


def on_mysql() -> bool:
    """Whether the run is against a MySQL."""
    return chosen_kind() in MYSQL
