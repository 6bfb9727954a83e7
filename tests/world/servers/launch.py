"""MySQL and newer MariaDB servers of one's own, used as `catchment.demo.server.PrivateServer` is."""

import re
import subprocess
from pathlib import Path
from typing import Any

from catchment.demo.accounts import FEED_USER
from catchment.demo.install import account_options, copy_template
from catchment.demo.server import PrivateServer
from catchment.model.errors import SourceError
from tests.world.servers.builds import Build

FEED_PRIVILEGES = "SELECT, REPLICATION SLAVE, REPLICATION CLIENT, XA_RECOVER_ADMIN"
_INSTALL_SECONDS = 120
_BOOTSTRAP = (
    "mariadb_system_tables.sql",
    "mariadb_performance_tables.sql",
    "mariadb_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
    "mariadb_sys_schema.sql",
)
_SEQUENCE = re.compile(r"(?:\b\w+\.)?\bseq_(\d+)_to_(\d+)\b")


def with_numbers(text: str) -> str:
    """A statement for MySQL in which tables such as `seq_1_to_9`, which MariaDB has by itself, are made."""
    return _SEQUENCE.sub(_numbers, text)


def _numbers(name: re.Match[str]) -> str:
    first, last = name.groups()
    return (
        f"(WITH RECURSIVE one AS (SELECT {first} AS seq UNION ALL SELECT seq + 1 FROM one WHERE seq < {last}) "
        "SELECT seq FROM one) AS numbers"
    )


class PrivateMySQL(PrivateServer):
    """One mysqld with FULL row images and metadata, GTIDs on, TLS offered, accounts of caching_sha2_password.

    Arguments as PrivateServer's, and the `build`. `domain_id` means nothing here. The server has a UUID of
    its own. Restart with `{"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}` for a log without GTIDs.
    """

    def __init__(self, build: Build, **arguments: Any) -> None:
        self.build = build
        super().__init__(**arguments)

    def log_end(self) -> tuple[str, int]:
        """File and offset of SHOW MASTER STATUS or SHOW BINARY LOG STATUS (8.2 and later)."""
        what = "BINARY LOG" if self.build.version >= (8, 2) else "MASTER"
        file, offset = self.sql(f"SHOW {what} STATUS")[0][:2]
        return str(file), int(offset)

    def sql(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """As PrivateServer's; tables `seq_1_to_9`, which MariaDB has by itself, are made where they are read."""
        return super().sql(*map(with_numbers, statements), database=database)

    def _lay_out(self) -> None:
        copy_template(repr(self.build), self._install, self.datadir)
        (self.datadir / "auto.cnf").unlink(missing_ok=True)  # the server's UUID

    def _install(self, directory: Path) -> None:
        command = [*self._program(), "--initialize-insecure", f"--datadir={directory}"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False, cwd=directory
        )
        if done.returncode != 0:
            raise SourceError(f"mysqld --initialize failed with {done.returncode}: {done.stderr[-2000:]}")

    def _account_statements(self) -> list[str]:
        statements = ["SET SESSION sql_log_bin = 0"]
        for account, password, privileges in (
            ("root@localhost", self._root_password, "ALL"),
            ("root@'127.0.0.1'", self._root_password, "ALL"),
            (f"{FEED_USER}@'%'", self.password, FEED_PRIVILEGES),
        ):
            statements.append(f"CREATE USER IF NOT EXISTS {account}")
            statements.append(f"ALTER USER {account} IDENTIFIED WITH caching_sha2_password BY '{password}'")
            option = " WITH GRANT OPTION" if privileges == "ALL" else ""
            statements.append(f"GRANT {privileges} ON *.* TO {account}{option}")
        return statements

    def _program(self) -> list[str]:
        return [
            *_program(self.build),
            *([f"--plugin-dir={self.build.plugins}"] if self.build.plugins else []),
        ]

    def _own_settings(self) -> dict[str, str | int]:
        return {"secure-file-priv": "NULL"}

    def _defaults(self, durable: bool) -> dict[str, str | int]:
        options = {
            **super()._defaults(durable),
            "gtid_mode": "ON",
            "enforce_gtid_consistency": "ON",
        }
        del options["innodb_log_file_size"]
        redo = "innodb_redo_log_capacity" if self.build.version >= (8, 0, 30) else "innodb_log_file_size"
        options["cte_max_recursion_depth"] = 1 << 30
        # Of the system's places for native AIO (fs.aio-max-nr) many servers at once need more than there are.
        options["innodb_use_native_aio"] = "OFF"
        return {**options, redo: "32M", "performance_schema": "ON", "loose_mysqlx": "OFF"}


class PrivateMariaDB(PrivateServer):
    """One mariadbd of another version than the system's; arguments as PrivateServer's, and the `build`."""

    def __init__(self, build: Build, **arguments: Any) -> None:
        self.build = build
        super().__init__(**arguments)

    def _lay_out(self) -> None:
        copy_template(repr(self.build), self._install, self.datadir)

    def _install(self, directory: Path) -> None:
        script = "".join((self.build.messages / name).read_text() for name in _BOOTSTRAP)
        command = [*self._program(), "--bootstrap", f"--datadir={directory}", "--skip-grant-tables"]
        done = subprocess.run(
            [*command, "--innodb-log-file-size=4M"],
            input=f"CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n{script}",
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise SourceError(f"mariadbd --bootstrap failed with {done.returncode}: {done.stderr[-2000:]}")

    def _program(self) -> list[str]:
        return _program(self.build)


def _program(build: Build) -> list[str]:
    directories = [f"--basedir={build.basedir}", f"--lc-messages-dir={build.messages}"]
    charsets = f"--character-sets-dir={build.messages / 'charsets'}"
    return [*build.command, "--no-defaults", *directories, charsets, *account_options()]
