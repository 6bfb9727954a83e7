"""A PostgreSQL server of one's own, with its own data and port, on 127.0.0.1 only. It dies with its parent."""

import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from catchment.demo.install import find_program
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.servers.debian import NotHere

USER = "catchment"
_STARTS = 5
# Made by Debian's package, which runs its servers so. PostgreSQL refuses to run as root.
_ACCOUNT = "postgres"

# The kernel kills a server when the *thread* that forked it ends (prctl(2), PR_SET_PDEATHSIG).
_launcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="postgres-launcher")


def programs() -> Path:
    """The directory of the newest PostgreSQL of this machine. Raises NotHere."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise NotHere("needs PostgreSQL: `make test-wide` installs it")
    return found[-1].parent


class PrivatePostgres:
    """One postgres process with a database `postgres`, whose superuser is `catchment`.

    Use as a context manager. Raises NotHere where there is no PostgreSQL.
    """

    def __init__(self) -> None:
        self.password = secrets.token_hex(12)
        self.port = 0
        self._programs = programs()
        self._home = Path(tempfile.mkdtemp(prefix="catchment-pg-"))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where JDBC finds it."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    @property
    def store_url(self) -> str:
        """Where a feed has its state store in it."""
        return f"postgresql+psycopg://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    def sql(self, statement: str) -> str:
        """What psql prints of a statement, unaligned and without headers. Raises CalledProcessError."""
        command = [*self._psql, "-c", statement]
        return subprocess.run(command, env=self._login, capture_output=True, text=True, check=True).stdout

    def stop(self) -> None:
        """Shut it down without waiting for its clients (PostgreSQL, Fast Shutdown)."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self) -> None:
        """Start it again with its data, at the port that it had."""
        self._process = _launcher.submit(self._launch).result()
        assert self._answers(), self._log.read_text()[-2000:]

    @contextmanager
    def held(self, statement: str) -> Iterator[None]:
        """A transaction that begins with a statement, and is rolled back behind the block."""
        with subprocess.Popen(
            self._psql, env=self._login, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as session:
            assert session.stdin is not None
            assert session.stdout is not None
            session.stdin.write(f"BEGIN; {statement}; SELECT 'held';\n")
            session.stdin.flush()
            assert session.stdout.readline() == "held\n"
            yield

    @property
    def _psql(self) -> list[str]:
        command = [str(self._programs / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]
        return [*command, "-p", str(self.port), "-U", USER, "-d", "postgres"]

    @property
    def _login(self) -> dict[str, str]:
        return {**os.environ, "PGPASSWORD": self.password}

    def __enter__(self) -> Self:
        try:
            self._lay_out()
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @property
    def _log(self) -> Path:
        return self._home / "log"

    def _lay_out(self) -> None:
        secret = self._home / "password"
        secret.write_text(self.password)
        if os.getuid() == 0:
            account = pwd.getpwnam(_ACCOUNT)
            for path in (self._home, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        command = [
            find_program("setpriv", "util-linux"),
            *_as_account(),
            "--",
            str(self._programs / "initdb"),
        ]
        command += ["-D", str(self._home / "data"), "-U", USER, f"--pwfile={secret}", "--auth=scram-sha-256"]
        command += ["--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(command, cwd=self._home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def _start(self) -> None:
        for _ in range(_STARTS):
            self.port = _free_port()
            self._process = _launcher.submit(self._launch).result()
            if self._answers():
                return
        raise AssertionError(f"PostgreSQL does not start; its words:\n{self._log.read_text()[-2000:]}")

    def _launch(self) -> "subprocess.Popen[bytes]":
        command = [find_program("setpriv", "util-linux"), "--pdeathsig", "KILL", *_as_account(), "--"]
        command += [str(self._programs / "postgres"), "-D", str(self._home / "data"), "-p", str(self.port)]
        command += ["-h", "127.0.0.1", "-k", str(self._home), "-F"]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _answers(self) -> bool:
        """Whether it answers; False when it has ended."""

        def ended() -> bool:
            return self._process is None or self._process.poll() is not None

        def up() -> bool:
            try:
                self.sql("SELECT 1")
            except subprocess.CalledProcessError:
                return False
            return True

        until("PostgreSQL answers, or ends", lambda: ended() or up())
        return not ended()

    def _close(self) -> None:
        self.stop()
        shutil.rmtree(self._home, ignore_errors=True)


def _as_account() -> list[str]:
    """Options of setpriv that leave root's account, where this is root's."""
    return ["--reuid", _ACCOUNT, "--regid", _ACCOUNT, "--clear-groups"] if os.getuid() == 0 else []


def _free_port() -> int:
    """A port nobody listens on, below the range from which the kernel takes ports of outgoing connections."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
