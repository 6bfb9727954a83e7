"""Real gh-ost and pt-online-schema-change, which swap a table for one that they made beside it.

gh-ost 1.1.8 sets `transaction_isolation`, which MariaDB has since 11.1; with MySQL 8.0.15 its cut-over does not get the
lock that it waits for. pt-online-schema-change refuses MySQL 8.0.14 to 8.0.17 (MySQL bug 96145).
"""

import functools
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from catchment.demo.server import PrivateServer
from tests.world.patience import PATIENCE_SECONDS
from tests.world.servers.builds import kept
from tests.world.servers.compiled import compile_program
from tests.world.servers.debian import NotHere

_GH_OST = "1.1.8"
_SLOWLY = {"gh-ost": ("--nice-ratio=3",), "pt-online-schema-change": ("--sleep=0.05",)}
_TRIES = 3  # a lock that others hold for too long ends either tool

Swap = Callable[[PrivateServer, str, str, str], None]
"""Alters a table of a schema: `swap(server, schema, table, alter)`."""

OF_SERVERS: dict[str, tuple[str, ...]] = {
    "mariadb": ("pt-online-schema-change",),
    "mariadb-11.8": ("gh-ost", "pt-online-schema-change"),
    "mysql-8.0": (),
    "mysql-9.7": ("gh-ost", "pt-online-schema-change"),
}
"""Which tools work with a kind of server (tests/world/servers/chosen.py)."""


def swaps_for(kind: str, *, slowly: bool = False) -> dict[str, Swap]:
    """The tools that work with a kind of server. `slowly`: they rest between chunks. Raises NotHere where one cannot be
    had."""
    had = {"gh-ost": _of_gh_ost, "pt-online-schema-change": _of_percona}
    return {name: had[name](_SLOWLY[name] if slowly else ()) for name in OF_SERVERS[kind]}


@functools.cache
def gh_ost() -> Path:
    """gh-ost (13 MB; Go and 150 MB of sources are fetched to compile it). Raises NotHere."""
    home = kept(
        f"gh-ost-{_GH_OST}",
        lambda target: compile_program(target, "github.com/github/gh-ost", _GH_OST, "go/cmd/gh-ost"),
    )
    return home / "gh-ost"


def _of_gh_ost(options: Sequence[str]) -> Swap:
    program = str(gh_ost())

    def swap(server: PrivateServer, schema: str, table: str, alter: str) -> None:
        command = [program, f"--host={server.host}", f"--port={server.port}", "--allow-on-master"]
        command += [f"--conf={server.defaults_file}"]
        command += [f"--database={schema}", f"--table={table}", f"--alter={alter}", "--execute"]
        command += ["--skip-port-validation", "--skip-metadata-lock-check", "--ok-to-drop-table"]
        command += ["--initially-drop-ghost-table", "--initially-drop-old-table"]
        command += ["--initially-drop-socket-file", f"--serve-socket-file={server.socket}.gh-ost"]
        command += ["--chunk-size=50", "--dml-batch-size=100", "--default-retries=20"]
        command += ["--cut-over-lock-timeout-seconds=5", *options]
        _run(command)

    return swap


def _of_percona(options: Sequence[str]) -> Swap:
    program = "pt-online-schema-change"
    if shutil.which(program) is None:
        raise NotHere(f"{program} is not installed (Debian's package percona-toolkit)")

    def swap(server: PrivateServer, schema: str, table: str, alter: str) -> None:
        command = [program, "--execute", "--no-version-check", "--recursion-method=none", "--chunk-size=50"]
        command += ["--no-check-alter", f"--alter={alter}", *options]
        # In latin1, its default, the bounds of its chunks are other keys than those of the table.
        _run([*command, f"F={server.defaults_file},A=utf8mb4,D={schema},t={table}"])

    return swap


def _run(command: Sequence[str]) -> None:
    for number in range(1, _TRIES + 1):
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"") + (late.stderr or b"")  # bytes, whatever `text` says
            raise AssertionError(
                f"{command[0]} did not end: {said[-2000:].decode(errors='replace')}"
            ) from None
        if done.returncode == 0:
            return
        assert number < _TRIES, f"{command[0]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}"
