"""Find Debian's MariaDB programs and lay out data directories; starts no server that stays.

Installing the system tables takes most of the time of a first start. So the demo does it once per server version and
user, into a template below the system's directory for temporary files. A data directory is a copy of the template.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from catchment.model.errors import SourceError

_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_INSTALL_SECONDS = 120


def find_program(name: str, package: str = "mariadb-server") -> str:
    """Path of a program on PATH or in an sbin directory; the SourceError raised names Debian's package."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")
    if found is None:
        raise SourceError(f"{name} is not installed; run: apt-get install {package}")
    return found


def lay_out(datadir: Path) -> None:
    """Fill `datadir` (made if missing, must be empty) with the system tables of the installed server.

    Raises SourceError when the server is not installed or the tables cannot be made.
    """
    server = find_program("mariadbd")
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
    copy_template(said, _install, datadir)


def account_options() -> list[str]:
    """Options for running under the caller's account (mariadbd refuses root unless it is named)."""
    return ["--user=root"] if os.getuid() == 0 else []


def copy_template(version: str, install: Callable[[Path], None], datadir: Path) -> None:
    """Copy a server version's template to `datadir`. `install` fills an empty directory on first use; several
    processes may ask at once. Raises SourceError."""
    shutil.copytree(
        _template(hashlib.sha256(version.encode()).hexdigest()[:12], install), datadir, dirs_exist_ok=True
    )
    datadir.chmod(0o700)


def _template(name: str, install: Callable[[Path], None]) -> Path:
    home = Path(tempfile.gettempdir()) / f"catchment-mariadb-{os.getuid()}"
    home.mkdir(mode=0o700, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise SourceError(
            f"{home} belongs to another user; remove it or set TMPDIR to a directory of your own"
        )
    template = home / name
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            # Beside the template, then moved there whole: an installer may be killed.
            scratch = Path(tempfile.mkdtemp(dir=home, prefix="installing-"))
            try:
                install(scratch)
                scratch.rename(template)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    return template


def _install(directory: Path) -> None:
    options = [
        "--no-defaults",
        f"--datadir={directory}",
        "--auth-root-authentication-method=normal",
        "--force",  # also where the machine's own name cannot be looked up
        "--skip-test-db",
        "--innodb-log-file-size=4M",  # the server resizes it at its first start; a small one is quick to copy
        *account_options(),
    ]
    done = subprocess.run(
        [find_program("mariadb-install-db"), *options],
        capture_output=True,
        text=True,
        timeout=_INSTALL_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise SourceError(
            f"mariadb-install-db failed with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
        )
