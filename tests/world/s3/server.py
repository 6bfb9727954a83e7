"""An S3 server of one's own, with its own data and port. It listens on 127.0.0.1 only and dies with its parent."""

import itertools
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from catchment.demo.install import find_program
from tests.world.patience import PATIENCE_SECONDS, until
from tests.world.s3.bucket import Bucket

_STARTS = 5

# The kernel kills a server when the *thread* that forked it ends (prctl(2), PR_SET_PDEATHSIG).
_launcher = ThreadPoolExecutor(max_workers=1, thread_name_prefix="s3-launcher")


class S3Server:
    """One versitygw process over a temporary directory; each directory in `root` is a bucket.

    Use as a context manager.
    """

    def __init__(self, program: Path) -> None:
        self.access_key = secrets.token_hex(8)
        self.secret_key = secrets.token_hex(16)
        self.port = 0
        self._program = program
        self._health = f"/{secrets.token_hex(16)}"  # nobody else answers there
        self._home = Path(tempfile.mkdtemp(prefix="catchment-s3-"))
        self.root = self._home / "buckets"
        self.root.mkdir()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)

    @property
    def endpoint(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """Process id of the running server, None when it does not run."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @contextmanager
    def fresh_bucket(self) -> Iterator[Bucket]:
        """A new, empty bucket, removed after the block."""
        name = f"lake-{next(self._numbers)}"
        (self.root / name).mkdir()
        try:
            yield Bucket(name, self.endpoint, self.access_key, self.secret_key)
        finally:
            shutil.rmtree(self.root / name, ignore_errors=True)

    def start(self) -> None:
        """Start, on the port that it had if it ran before, and wait until it answers."""
        for _ in range(_STARTS):
            port = self.port or _free_port()
            self._process = _launcher.submit(self._launch, port).result()
            if self._answers(port):
                self.port = port
                return
        raise AssertionError(f"the S3 server does not start; its words:\n{self._log.read_text()[-2000:]}")

    def kill9(self) -> None:
        """End it as a crash does; the data stay."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        try:
            self.start()
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

    def _launch(self, port: int) -> "subprocess.Popen[bytes]":
        command = [find_program("setpriv", "util-linux"), "--pdeathsig", "KILL", "--", str(self._program)]
        command += ["--port", f"127.0.0.1:{port}", "--health", self._health]
        command += ["--quiet", "--keep-alive", "posix", *self._metadata()]
        keys = {"ROOT_ACCESS_KEY": self.access_key, "ROOT_SECRET_KEY": self.secret_key}
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*command, str(self.root)],
                env={"PATH": os.environ["PATH"], **keys},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _metadata(self) -> list[str]:
        """Where ETags go: into attributes of the file, unless the file system has none (tmpfs before Linux 6.6)."""
        try:
            os.setxattr(self.root, "user.catchment", b"")
        except OSError:
            (self._home / "metadata").mkdir(exist_ok=True)
            return ["--sidecar", str(self._home / "metadata")]
        return []

    def _answers(self, port: int) -> bool:
        """Whether it answers at that port; False when it has ended, as where another program has the port."""

        def up() -> bool:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{self._health}"):
                    return True
            except OSError:
                return False

        until("the S3 server answers, or ends", lambda: self.pid is None or up(), every=0.01)
        return self.pid is not None

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _close(self) -> None:
        self._end(signal.SIGTERM)
        shutil.rmtree(self._home, ignore_errors=True)


def _free_port() -> int:
    """A port nobody listens on, below the range from which the kernel takes ports of outgoing connections."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
