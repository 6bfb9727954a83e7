"""A MariaDB server of one's own, with its own data, port and socket, for demo, tests and benchmarks.

It listens on 127.0.0.1 only, ends only the process that it started, and dies with the program that
started it.
"""

import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql
from pymysql.connections import Connection

from catchment.demo.accounts import FEED_USER, account_statements
from catchment.demo.install import account_options, find_program, lay_out
from catchment.model.errors import SourceError

_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
# Of servers that choose a port in the same moment one gets it. MariaDB and MySQL ask the loser in its error log: "Do
# you already have another mysqld server running on port".
_PORTS_TRIED = 5
_PORT_TAKEN = "have another"

# The kernel sends the parent-death signal when the *thread* that forked ends (prctl(2), PR_SET_PDEATHSIG). So one
# thread, which lives as long as the program, forks all servers.
_launcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mariadb-launcher")


class PrivateServer:
    """One mariadbd process with row logging as a feed wants it (FULL images, FULL metadata, GTIDs).

    `datadir` is kept when given and removed by `close` when not. `durable` flushes redo and binary log at every commit
    (1 and 1). Without it both reach the operating system at commit (2 and 0): that survives kill -9 of the server but
    not a power cut. `settings` are further server options, which win over the defaults, e.g. `{"max_binlog_size":
    4096}`. `password` is that of the user `catchment`, random when not given. With `dies_with_parent` the kernel kills
    the server when this program ends in any way (a program that is itself killed leaves the temporary directory
    behind).

    Use as a context manager (start, close), or call `start` and `close`.
    """

    def __init__(
        self,
        *,
        server_id: int = 1,
        domain_id: int = 0,
        datadir: Path | None = None,
        port: int | None = None,
        durable: bool = False,
        settings: Mapping[str, str | int] | None = None,
        password: str | None = None,
        dies_with_parent: bool = True,
    ) -> None:
        self.server_id = server_id
        self.domain_id = domain_id
        self.host = "127.0.0.1"
        self.password = password or secrets.token_hex(12)
        self._root_password = secrets.token_hex(12)
        self._run_dir = Path(tempfile.mkdtemp(prefix="catchment-db-"))
        self._temporary = datadir is None
        self.datadir = datadir.resolve() if datadir else self._run_dir / "data"
        self.socket = self._run_dir / "socket"
        self._given_port = port
        self.port = port or _free_port()
        self.settings: dict[str, str | int] = {
            **self._defaults(durable),
            **(settings or {}),
        }
        self._dies_with_parent = dies_with_parent
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the running server, None when it does not run."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def error_log(self) -> Path:
        """The server's error log."""
        return self.datadir / "error.log"

    @property
    def defaults_file(self) -> Path:
        """Option file (mode 0600) for MariaDB's programs to log in as root: `--defaults-file=...`."""
        return self._run_dir / "client.cnf"

    def start(self) -> Self:
        """Start and wait for an answer; raises SourceError with the end of the error log."""
        if self.pid is not None:
            raise SourceError(f"the private server on port {self.port} runs already")
        first = not (self.datadir / "mysql").exists()
        if first:
            self._lay_out()
        self._write_accounts()
        # A restart keeps its port.
        if not first or self._given_port is not None:
            self._start_once()
            return self
        for others in range(_PORTS_TRIED, 0, -1):
            self.port = _free_port()
            try:
                self._start_once()
                break
            except SourceError:
                if others == 1 or _PORT_TAKEN not in self._error_log_end():
                    raise
        return self

    def _start_once(self) -> None:
        self._process = _launcher.submit(self._launch).result()
        self._await_answer()

    def stop(self) -> None:
        """Shut down in order (SIGTERM); the data stay. Does nothing when the server does not run."""
        self._end(signal.SIGTERM)

    def kill9(self) -> None:
        """End the server as a crash does (SIGKILL); the data stay."""
        self._end(signal.SIGKILL)

    def restart(self, settings: Mapping[str, str | int] | None = None) -> None:
        """Stop if it runs, start on the same port and data; `settings` are added to those given before."""
        self.stop()
        self.settings.update(settings or {})
        self.start()

    def close(self) -> None:
        """End the server and remove what is temporary."""
        self._end(signal.SIGKILL if self._temporary else signal.SIGTERM)
        shutil.rmtree(self._run_dir, ignore_errors=True)

    def login(self, user: str = FEED_USER) -> dict[str, Any]:
        """PyMySQL's `host`, `port`, `user`, `password` for the feed's user or root, and `ssl_disabled`.

        PyMySQL loads the system's certificates at each connect (25 ms) unless told that there is no TLS.
        """
        password = self._root_password if user == "root" else self.password
        return {
            "host": self.host,
            "port": self.port,
            "user": user,
            "password": password,
            "ssl_disabled": True,
        }

    def connect(
        self, user: str = "root", database: str | None = None, **options: Any
    ) -> "Connection[pymysql.cursors.Cursor]":
        """A new PyMySQL connection over TCP (autocommit unless `options` say otherwise); close it."""
        arguments: dict[str, Any] = {
            **self.login(user),
            "database": database,
            "charset": "utf8mb4",
            "autocommit": True,
            **options,
        }
        return pymysql.connect(**arguments)

    def sql(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements as root in one session of their own; returns the rows of the last."""
        connection = self.connect(database=database)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def log_end(self) -> tuple[str, int]:
        """File and offset of SHOW MASTER STATUS: the end of the log, visible or not."""
        file, offset = self.sql("SHOW MASTER STATUS")[0][:2]
        return str(file), int(offset)

    def dump(self, target: Path, databases: Sequence[str]) -> None:
        """Write the databases with mariadb-dump (one snapshot) to the file `target`; raises SourceError."""
        command = [
            find_program("mariadb-dump", "mariadb-client"),
            f"--defaults-file={self.defaults_file}",
            "--single-transaction",
            "--skip-comments",
            f"--result-file={target}",
            "--databases",
            *databases,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SourceError(f"mariadb-dump on port {self.port} failed: {done.stderr.strip()}")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What the servers of tests/world/servers do differently: system tables, accounts, options.

    def _lay_out(self) -> None:
        lay_out(self.datadir)

    def _account_statements(self) -> list[str]:
        return account_statements(self._root_password, self.password)

    def _program(self) -> list[str]:
        return [find_program("mariadbd"), "--no-defaults", *account_options()]

    def _own_settings(self) -> dict[str, str | int]:
        return {"gtid-domain-id": self.domain_id}

    def _defaults(self, durable: bool) -> dict[str, str | int]:
        return _defaults(durable)

    def _write_accounts(self) -> None:
        statements = self._account_statements()
        _write_private(self._run_dir / "init.sql", ";\n".join(statements) + ";\n")
        _write_private(
            self.defaults_file,
            f"[client]\nuser=root\npassword={self._root_password}\nsocket={self.socket}\n",
        )

    def _launch(self) -> "subprocess.Popen[bytes]":
        own = {
            "datadir": self.datadir,
            "port": self.port,
            "bind-address": self.host,
            "socket": self.socket,
            # A server that starts removes the temporary tables that it finds, also those of its neighbours.
            "tmpdir": self._run_dir,
            "pid-file": self._run_dir / "pid",
            "log-error": self.error_log,
            "init-file": self._run_dir / "init.sql",
            "server-id": self.server_id,
            **self._own_settings(),
        }
        command = self._program()
        command += [f"--{name.replace('_', '-')}={value}" for name, value in {**own, **self.settings}.items()]
        if self._dies_with_parent:
            command = [find_program("setpriv", "util-linux"), "--pdeathsig", "KILL", "--", *command]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the program, which then ends its server in order
        )

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.connect(connect_timeout=5).close()
                return
            except pymysql.err.OperationalError as refused:
                # Another server's answer is none: ours ends soon.
                if self.pid is None or time.monotonic() > deadline:
                    self.kill9()
                    raise SourceError(
                        f"the private server on port {self.port} did not start ({refused}); "
                        f"the end of {self.error_log}:\n{self._error_log_end()}"
                    ) from refused
            time.sleep(0.02)

    def _error_log_end(self) -> str:
        lines = self.error_log.read_text(errors="replace").splitlines() if self.error_log.exists() else []
        return "\n".join(lines[-20:])

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _defaults(durable: bool) -> dict[str, str | int]:
    return {
        "log_bin": "binlog",
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_row_metadata": "FULL",
        "sync_binlog": 1 if durable else 0,
        "innodb_flush_log_at_trx_commit": 1 if durable else 2,
        "innodb_buffer_pool_size": "64M",
        "innodb_log_file_size": "48M",
        "innodb_buffer_pool_dump_at_shutdown": "OFF",
        "innodb_fast_shutdown": 1,
        "character_set_server": "utf8mb4",
        "performance_schema": "OFF",
        "skip_name_resolve": "ON",
        "max_connections": 200,
    }


def _free_port() -> int:
    """A port nobody listens on, below the range from which the kernel takes ports of outgoing connections."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _write_private(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
